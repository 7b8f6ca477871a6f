// ldmatrix, stmatrix, movmatrix, mma and wmma (PTX ISA 9.7.14).
#include <cstdio>

#include "executor/decoder.h"
#include "executor/matrix.h"

namespace sim {

bool Decoder::matrix(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  if (m != "ldmatrix" && m != "stmatrix" && m != "movmatrix" && m != "mma" && m != "wmma") return false;
  if (!has("sync") || !has("aligned")) fail("neither .sync nor .aligned");
  if (m == "mma" || (m == "wmma" && has("mma")))
    multiply(op);
  else if (m == "wmma")
    fragment_move(op);
  else
    matrix_move(op);
  return true;
}

/// `count` registers, `{a, b}` or one alone.
void Decoder::list(Op& op, const Operand& registers, size_t count, uint8_t bytes, bool is_result) {
  const auto add = [&](const Operand& one) {
    op.elements.push_back({is_result ? write(one, bytes) : read_bytes(one, bytes), bytes});
  };
  if (registers.kind != Operand::Kind::vector) {
    if (count != 1) fail("no vector");
    return add(registers);
  }
  if (registers.elements.size() != count) fail(formatted("a vector of other than {} registers", count));
  for (const Operand& one : registers.elements) add(one);
}

void Decoder::matrix_move(Op& op) {
  const std::string_view m = instruction_->mnemonic;
  if (m == "movmatrix") {
    if (op.text != "movmatrix.sync.aligned.m8n8.trans.b16") fail("unknown instruction");
    op.kind = Kind::matrix_transpose;
    op.counted = Class::warp;
    list(op, operand(0), 1, 4, true);
    list(op, operand(1), 1, 4, false);
    return;
  }
  only({"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16"});
  if (!has("m8n8") || !has("b16")) fail("unknown shape or type");
  const bool is_load = m == "ldmatrix";
  op.kind = is_load ? Kind::matrix_load : Kind::matrix_store;
  op.counted = Class::shared;
  op.space = space_of({"shared", "shared::cta"});
  op.bytes = 16;  // a row
  op.transposed = has("trans");
  address(op, operand(is_load ? 1 : 0));
  list(op, operand(is_load ? 0 : 1), has("x4") ? 4 : has("x2") ? 2 : 1, 4, is_load);
}

void Decoder::multiply(Op& op) {
  std::string name = op.text;
  if (instruction_->mnemonic == "wmma") {
    name = "wmma";
    for (const std::string_view m : instruction_->modifiers)
      if (m != "row" && m != "col") name += formatted(".{}", m);
  }
  const MatrixMultiply* known = find_matrix_multiply(name);
  if (!known) fail(formatted("unknown instruction {}", op.text));
  require_fp8("mma with FP8 floating point type");
  op.kind = Kind::matrix_multiply;
  op.counted = Class::tensor;
  op.flops = known->flops;
  op.multiply = known->function;
  list(op, operand(0), known->d_registers, known->d_bytes, true);
  list(op, operand(1), known->a_registers, known->a_bytes, false);
  list(op, operand(2), known->b_registers, known->b_bytes, false);
  list(op, operand(3), known->c_registers, known->c_bytes, false);
  if (operands() != 4) fail("too many operands");
}

void Decoder::fragment_move(Op& op) {
  const auto& modifiers = instruction_->modifiers;  // load.a.sync.aligned.row.m16n16k16{.shared}.f16
  const bool is_load = has("load");
  if (modifiers.size() < 7 || (!is_load && modifiers[0] != "store")) fail("unknown instruction");
  const char what = modifiers[1][0];
  const std::string type(modifiers.back()), shape(modifiers[5]);
  int m = 0, n = 0, k = 0;
  if (std::sscanf(shape.c_str(), "m%dn%dk%d", &m, &n, &k) != 3) fail("unknown shape");
  const bool is_c = what == 'c' || what == 'd';
  if (modifiers[1].size() != 1 || (is_load ? what < 'a' || what > 'c' : what != 'd')) fail("unknown matrix");
  if (!has("row") && !has("col")) fail("unknown layout");

  // Shapes and types that go together (PTX ISA 9.7.14.1, "Matrix Shape").
  struct Known {
    const char *shape, *ab, *c;
  };
  static constexpr Known table[] = {{"m16n16k16", " f16 bf16 s8 u8 ", " f16 f32 s32 "},
                                    {"m32n8k16", " f16 bf16 s8 u8 ", " f16 f32 s32 "},
                                    {"m8n32k16", " f16 bf16 s8 u8 ", " f16 f32 s32 "},
                                    {"m16n16k8", " tf32 ", " f32 "},
                                    {"m8n8k4", " f64 ", " f64 "}};
  const bool found = std::any_of(std::begin(table), std::end(table), [&](const Known& known) {
    return shape == known.shape && std::string(is_c ? known.c : known.ab).find(" " + type + " ") != std::string::npos;
  });
  if (!found) fail(formatted("unknown instruction {}", op.text));

  auto fragment = std::make_shared<Fragment>();
  Fragment& f = *fragment;
  const int rows = what == 'b' ? k : m, columns = what == 'a' ? k : n;
  f.element_bytes = type == "f64" ? 8 : type == "f16" || type == "bf16" ? 2 : type == "s8" || type == "u8" ? 1 : 4;
  f.each = std::max(1, 4 / f.element_bytes);
  f.by_rows = has("row");
  f.lines = f.by_rows ? rows : columns;
  f.line_bytes = (f.by_rows ? columns : rows) * f.element_bytes;
  const int elements = rows * columns / warp_size;
  const auto position = [&](int lane, int i) {
    return what == 'a'   ? a_position(m, k, f.each, lane, i)
           : what == 'b' ? b_position(k, f.each, lane, i)
                         : c_position(m, n, lane, i);
  };
  for (int l = 0; l < warp_size; ++l)
    for (int i = 0; i < elements; ++i) f.position[l].push_back(position(l, i));

  // The accesses: one for each register of the fragment, or for each pair of C's; that is a block of 8 times `packed`
  // elements. Where lines run along the packed direction, a lane's elements are neighbours, and it moves them at once; else
  // lanes share the block's lines among themselves, as where hardware transposes on the way. Which lane takes what is unspecified.
  const int packed = is_c ? 8 : 4 * f.each, at_once = packed / 4;
  const bool along = f.by_rows == (what != 'b');
  for (int i = 0; i < elements; i += at_once) {
    const Position origin = position(0, i);
    const int line = f.by_rows ? origin.row : origin.column,
              byte = (f.by_rows ? origin.column : origin.row) * f.element_bytes;
    const int bytes = along ? at_once * f.element_bytes : std::max(4, f.element_bytes);
    const int across = (along ? packed : 8) * f.element_bytes / bytes;  // lanes to a line of the block
    for (int first = 0; first < 8 * packed * f.element_bytes / bytes; first += warp_size) {
      Fragment::Access access;
      access.bytes = uint8_t(bytes);
      for (int l = 0; l < warp_size; ++l) {
        access.line[l] = uint8_t(line + (first + l) / across);
        access.byte[l] = uint8_t(byte + (first + l) % across * bytes);
      }
      f.accesses.push_back(access);
    }
  }

  op.kind = is_load ? Kind::fragment_load : Kind::fragment_store;
  op.space = space_of({"global", "shared", "shared::cta"});
  op.counted = op.space == Space::shared ? Class::shared : Class::global;
  address(op, operand(is_load ? 1 : 0));
  const bool repeats = !is_c && type == "f16";  // its fragments have 8 registers whatever the shape
  list(op, operand(is_load ? 0 : 1), repeats ? 8 : size_t(elements / f.each), f.element_bytes == 8 ? 8 : 4, is_load);
  // Without a stride, the matrix is dense.
  op.o.b = operands() > 2 ? read_bytes(operand(2), 4) : constant(uint64_t(f.line_bytes / f.element_bytes), 4);
  op.fragment = fragment;
}

}  // namespace sim
