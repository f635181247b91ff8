/* A grammar: a weighted finite automaton read from a CSV with the header state,word,next,weight. Because the source is
 * known, so are the right answers: what it emits, how well the best possible predictor does, and what it cannot say. */
#ifndef MASKGRAD_GRAMMAR_H
#define MASKGRAD_GRAMMAR_H

#include "rng.h"
#include "tokenizer.h"

#include <stdbool.h>

typedef struct mg_grammar mg_grammar;

/* ---- Not installed: between maskgrad's own files ---- */
/* The start is the state of the first row. Errors name the row or the state: a missing column, a weight that is not a
 * positive number, a state that no row defines, a state that cannot return to the start or be reached from it, an
 * invalid or empty word, a word with white space. */
mg_status mg_grammar_parse(mg_grammar **grammar, const char *csv, size_t length, const char *name, mg_error *error);
void mg_grammar_free(mg_grammar *grammar);
int mg_grammar_words(const mg_grammar *grammar);
const char *mg_grammar_word(const mg_grammar *grammar, int id); /* words are numbered in order of appearance */
/* The fewest words from the start to its next visit, at least 1. */
int mg_grammar_shortest_sentence(const mg_grammar *grammar);
/* The word that ends every sentence and occurs nowhere else; MG_ERR_INPUT if there is none, with two words at fault. */
mg_status mg_grammar_sentence_end(const mg_grammar *grammar, int *word, mg_error *error);
/* n words of an endless walk from the start state; word i is a function of (seed, words before it). */
void mg_grammar_sample(const mg_grammar *grammar, uint64_t seed, int *ids, ptrdiff_t n);
/* The Bayes-optimal predictor on one window of T inputs and its T targets: loss[t] = −log P(targets[t] | ids[0..t]) by
 * the forward filter over states, started from the stationary distribution. On average, no predictor that does not see
 * the future beats it. Infinite where the grammar forbids the target; the belief then is what the forbidden word
 * implies about the state by itself. */
void mg_grammar_bayes_loss(const mg_grammar *grammar, const int *ids, const int *targets, ptrdiff_t T, double *loss);
/* Its expectation for t = 0 … T-1 into floor[0 … T-1], by enumeration of the beliefs that can arise (is_exact), or,
 * when these are too many, by the mean over sampled windows: the larger the grammar, the fewer, so that it takes a few
 * seconds at most. *standard_error is that of the mean of floor over the window (0 when exact). */
mg_status mg_grammar_floor(const mg_grammar *grammar, ptrdiff_t T, double *floor, double *standard_error,
                           bool *is_exact, mg_error *error);
/* The entropy rate in nats per word: the loss of a predictor that knows the whole past. *is_exact if state and word
 * determine the next state (then it is the stationary mean of the state's entropy) or if few enough beliefs about the
 * state can arise to list them; else it is the mean over a walk of up to a million words. */
mg_status mg_grammar_entropy_rate(const mg_grammar *grammar, double *rate, bool *is_exact, mg_error *error);
/* How much of a text the grammar could have produced. A sentence runs from the start state to its next visit of it; the
 * words of a text that starts mid-sentence are followed from every state. */
typedef struct mg_grammar_score {
    int sentences;   /* sentences begun after the first return to the start (the first, if the text starts there) */
    int grammatical; /* of these, how many could have been produced */
    ptrdiff_t words, impossible_words; /* words that no state the text could be in emits; after one, all states again */
} mg_grammar_score;
/* A text is cut after a word that always leads to the start, possible or not, and wherever the start is the only state
 * left. An unfinished last sentence counts only if it is already impossible. An id that is not a word counts as an
 * impossible word. */
void mg_grammar_judge(const mg_grammar *grammar, const int *ids, ptrdiff_t n, bool from_start, mg_grammar_score *score);
/* p[word], for every word: the probability that it is at position `at` of a window of T words, given all the others
 * (ids[at] is not looked at), by the forward-backward algorithm from the stationary distribution. T = at + 1: given
 * those before it. All 0 if no text of the grammar has the other words. */
void mg_grammar_hidden_word(const mg_grammar *grammar, const int *ids, ptrdiff_t T, ptrdiff_t at, double *p);
/* Its expected entropy in nats, H(x_at | all others), into entropy[at] for at = 0 … T-1, exactly; *is_exact is false,
 * and the rest useless, if too many beliefs can arise. */
mg_status mg_grammar_hidden_entropy(const mg_grammar *grammar, ptrdiff_t T, double *entropy, bool *is_exact,
                                    mg_error *error);

#endif
