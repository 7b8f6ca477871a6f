#include "sim/executor/counters.h"

namespace sim {

const char* name(Class c) {
  static constexpr const char* names[classes] = {"integer", "fp32",      "fp64",    "fp16",    "tensor", "convert",
                                                 "move",    "predicate", "control", "global",  "shared", "local",
                                                 "param",   "atomic",    "shuffle", "barrier", "other"};
  return names[static_cast<size_t>(c)];
}

Counts& Counts::operator+=(const Counts& o) {
  for (size_t i = 0; i < classes; ++i) {
    instructions[i] += o.instructions[i];
    lanes[i] += o.lanes[i];
  }
  for (size_t i = 0; i < flops.size(); ++i) flops[i] += o.flops[i];
  for (const auto member :
       {&Counts::global_loads, &Counts::global_load_sectors, &Counts::global_stores, &Counts::global_store_sectors,
        &Counts::global_load_bytes, &Counts::global_store_bytes, &Counts::shared_loads, &Counts::shared_stores,
        &Counts::shared_load_wavefronts, &Counts::shared_store_wavefronts, &Counts::shared_load_ideal,
        &Counts::shared_store_ideal, &Counts::shared_load_bytes, &Counts::shared_store_bytes, &Counts::barriers})
    this->*member += o.*member;
  return *this;
}

Counters& Counters::operator+=(const Counters& o) {
  total += o.total;
  for (const auto& [line, counts] : o.lines) lines[line] += counts;
  launches += o.launches;
  blocks += o.blocks;
  return *this;
}

}  // namespace sim
