// main() of every rung's program and of `ladder`, which differ only in the rungs that are linked in.
#include "common/harness/harness.h"

int main(int argc, char** argv) { return ladder::run(argc, argv); }
