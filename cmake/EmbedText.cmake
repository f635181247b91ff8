# cmake -D FROM=FILE -D TO=FILE.c -D NAME=SYMBOL -P EmbedText.cmake: a text file as a string of C, unsigned char SYMBOL[].
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "extern const unsigned char ${NAME}[];\nconst unsigned char ${NAME}[] = {${bytes}0};\n")
