# Ctrl-C in a lab: what was measured stays, marked as incomplete, and the exit status is 130.
maskgrad=$1
. "$(dirname "$0")/../tools/lab.bash"

# interrupt PATTERN ARGUMENTS...: run a lab, and interrupt it once its progress matches.
interrupt() {
    local pattern=$1
    shift
    "$maskgrad" lab "$@" >out.txt 2>err.txt &
    local lab=$!
    for _ in $(seq 300); do
        grep -q "$pattern" err.txt && break
        sleep 0.1
    done
    kill -INT $lab
    wait $lab
}
# A shell starts background jobs with SIGINT ignored; the lab handles it all the same.
interrupt 'training [1-9]' leak --max-iters 100000 --out-dir leak
status=$?
[ $status -eq 130 ] || fail "lab leak: exit status $status: $(cat err.txt)"
grep -qx 'the lab ran to its end,it was interrupted; what follows was not measured,not measured,undecided' \
    leak/summary.csv || fail "the summary does not say that it is incomplete: $(cat leak/summary.csv)"
grep -q ',pass$\|,fail$' leak/summary.csv && fail "a verdict that was not reached: $(cat leak/summary.csv)"
[ "$(wc -l <leak/unfinished.csv)" -gt 2 ] || fail "the losses until then are gone"
grep -q 'This lab was interrupted' leak/report.html || fail "the report does not say that it is incomplete"
tr -s ' \n' ' ' <out.txt | grep -q 'Interrupted. What was measured is in leak/report.html' || fail "where it is: $(tail -3 out.txt)"

# `lab all` does not continue with the next lab.
interrupt 'training 0' all --out-dir all
status=$?
[ $status -eq 130 ] || fail "lab all: exit status $status: $(cat err.txt)"
[ "$(grep -c '^lab [a-z]*$' out.txt)" -eq 1 ] || fail "lab all went on: $(grep '^lab' out.txt)"
grep -q 'interrupted' all/index.html || fail "the index does not say so"
echo ok
