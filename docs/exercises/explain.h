// What the checkers of the exercises share. A checker NAME.explain.cpp includes the learner's lines between `// [region]` and
// `// [/region]` as hole/region, and those of the rung as solution/region. It runs the learner's lines on the CPU and writes on
// standard output, one line per finding, what is wrong with them; nothing if nothing is.
#pragma once

#include <cstdint>
#include <iostream>
#include <stdexcept>

/// Writes a finding: its parts, then the end of the line.
template <class... Parts>
void finding(const Parts&... parts) {
  (std::cout << ... << parts) << '\n';
}
