/* The end of a run: the loss by position beside the floor, and samples. */
#include "atomic_file.h"
#include "run.h"
#include "samples.h"

/* The last measurement takes more windows than those during training, since the loss of one position needs them. */
enum { FINAL_FACTOR = 4 };

static mg_status write_positions(const mg_run *run, const mg_evaluation *evaluation, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, run->dir.position, error);
    if (status != MG_OK) return status;
    mg_evaluation_print(evaluation, file.out);
    return mg_atomic_text_end(&file, error);
}

static void show_sample(const int *ids, ptrdiff_t n, void *user) {
    const mg_run *run = user;
    run->watch.sampled(run, mg_trainer_steps_done(run->trainer), ids, n, run->watch.user);
}

mg_status mg_run_write_samples(mg_run *run, mg_grammar_score *score, mg_error *error) {
    mg_samples_options options = {.n_samples = 4,
                                  .n_tokens = 200,
                                  .sampler = {.temperature = 0.8, .top_p = 1},
                                  .seed = run->options.train.seed,
                                  .show = run->watch.sampled ? show_sample : NULL,
                                  .user = run};
    return mg_samples_write(run->dir.samples, mg_trainer_model(run->trainer), run->corpus, &options, score, error);
}

mg_status mg_run_finish(mg_run *run, mg_run_results *results, mg_error *error) {
    *results = (mg_run_results){0};
    const mg_stop *stop = run->watch.stop.asked ? &run->watch.stop : NULL;
    mg_status status = mg_trainer_evaluate(&results->evaluation, run->trainer, MG_VALIDATION,
                                           FINAL_FACTOR * run->options.eval_iters, stop, error);
    if (status != MG_OK) return status;
    status = write_positions(run, &results->evaluation, error);
    if (status == MG_OK) status = mg_run_write_samples(run, &results->score, error);
    if (status != MG_OK) mg_evaluation_free(&results->evaluation);
    return status;
}
