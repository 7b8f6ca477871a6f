// Constants that bench/sweep.py varies.
#pragma once

/// `value`; but what follows the comma, where the compiler was given a definition such as
///   #define TUNE_STAGES , 5
#define TUNABLE(name, value) LADDER_SECOND_OF(TUNE_##name, value, )
#define LADDER_SECOND_OF(...) LADDER_SECOND(__VA_ARGS__)
#define LADDER_SECOND(first, second, ...) second
