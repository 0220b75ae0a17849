/* The tables behind facts.h. */
#include "schema/facts.h"

const struct fact_info fact_infos[N_FACTS] = {
#define FACT(subject, name, type, sentence) {#name, SUBJECT_##subject, FACT_##type, sentence},
#include "schema/facts.def"
#undef FACT
};

const struct loss_info loss_infos[N_LOSSES] = {
#define LOSS(name, severity, side, meaning, remedy) {#name, #severity, #side, meaning, remedy},
#include "schema/losses.def"
#undef LOSS
};
