// One of ThunderKittens' educational_b200 levels (LEVEL), with its own check, at the size that is given.
#define main main_at_4096
#include LEVEL
#undef main

#include <cstdlib>

int main(int argc, char** argv) { return argc == 2 ? run_benchmark(std::atoi(argv[1])) : 2; }
