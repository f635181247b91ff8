# Labs on data that are not their own: eight words without order, two letters, a template. What the data decides may come
# out well; what it cannot decide is undecided; nothing fails, and no sentence holds a number that is none.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"
{
    echo state,word,next,weight
    for i in 1 2 3 4 5 6 7; do echo "inside,w$i,inside,$i"; done
    echo inside,end,inside,8
} >flat.csv
awk 'BEGIN { srand(3); for (i = 0; i < 3000; i++) { if (rand() < .3) b = !b; printf "%s", b ? "b" : "a" } }' >letters.txt
awk 'BEGIN { srand(4); for (i = 0; i < 300; i++) print "the cup is " (rand() < .5 ? "red" : "green") }' >lines.txt

tiny="--quick --threads 1"
sizes="--n-layer 1 --n-head 1 --n-embd 16 --block-size 16 --max-iters 60"
on() { # LAB DATA and more flags
    local lab=$1 data=$2
    shift 2
    # shellcheck disable=SC2086
    "$maskgrad" lab "$lab" $tiny --data "$data" --out-dir "$lab-$data" "$@" >out.txt 2>err.txt
    local status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || fail "$lab on $data: status $status: $(tail -1 err.txt) $(grep -A3 FAIL out.txt)"
    [ "$(grep -c ',pass$' "$lab-$data/summary.csv")" -ge 1 ] || fail "$lab on $data decides nothing"
    sed 's/<[^>]*>/ /g' "$lab-$data/report.html" | grep -qwE 'nan|inf' && fail "$lab on $data says: $(grep -wE 'nan|inf' out.txt)"
}
for data in flat.csv letters.txt; do
    # shellcheck disable=SC2086
    on saturation $data ${sizes/16/64} --batch-size 4 --eval-interval 30 --eval-iters 1
    # shellcheck disable=SC2086
    on hidden $data $sizes
    # shellcheck disable=SC2086
    on channel $data $sizes
    # shellcheck disable=SC2086
    on speculative $data $sizes --draft-n-embd 8
done
# shellcheck disable=SC2086
on packed lines.txt $sizes
grep -q '^"2/√C: loss unscaled.*own settings and data.*,undecided$' saturation-flat.csv/summary.csv || fail "slower, on any data"
grep -q "^\"2/√C, at the start: the softmax's Jacobian.*,pass$" saturation-flat.csv/summary.csv || fail "the Jacobian: $(
    grep start saturation-flat.csv/summary.csv
)"
grep -q '^"both sides: loss.*tokens after a gap say little.*,undecided$' hidden-flat.csv/summary.csv || fail "words without order"
grep -q '^"both sides: loss.*nobody knows what the left one allows.*,undecided$' hidden-letters.txt/summary.csv || fail "a text"
echo ok
