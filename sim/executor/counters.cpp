#include "executor/counters.h"

namespace sim {

const char* name(Class c) {
  switch (c) {
    case Class::integer:
      return "integer";
    case Class::fp32:
      return "fp32";
    case Class::fp64:
      return "fp64";
    case Class::fp16:
      return "fp16";
    case Class::tensor:
      return "tensor";
    case Class::convert:
      return "convert";
    case Class::move:
      return "move";
    case Class::predicate:
      return "predicate";
    case Class::control:
      return "control";
    case Class::global:
      return "global";
    case Class::shared:
      return "shared";
    case Class::local:
      return "local";
    case Class::param:
      return "param";
    case Class::atomic:
      return "atomic";
    case Class::warp:
      return "shuffle";
    case Class::barrier:
      return "barrier";
    case Class::other:
      return "other";
  }
  return "";
}

Counts& Counts::operator+=(const Counts& o) {
  for (size_t i = 0; i < classes; ++i) {
    instructions[i] += o.instructions[i];
    lanes[i] += o.lanes[i];
  }
  for (size_t i = 0; i < flops.size(); ++i) flops[i] += o.flops[i];
  for (size_t i = 0; i < mma.size(); ++i) mma[i] += o.mma[i];
  for (const auto member :
       {&Counts::global_loads, &Counts::global_load_sectors, &Counts::global_stores, &Counts::global_store_sectors,
        &Counts::global_load_bytes, &Counts::global_store_bytes, &Counts::shared_loads, &Counts::shared_stores,
        &Counts::shared_load_wavefronts, &Counts::shared_store_wavefronts, &Counts::shared_load_ideal,
        &Counts::shared_store_ideal, &Counts::shared_load_bytes, &Counts::shared_store_bytes, &Counts::barriers,
        &Counts::mma_shared_bytes, &Counts::tensor_copy_bytes, &Counts::tensor_load_bytes, &Counts::tensor_store_bytes})
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
