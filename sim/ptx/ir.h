// What the parser makes of a PTX file: modules, functions, variables, registers and instructions, with every name resolved.
//
// An instruction keeps its mnemonic and its modifiers as written; the executor gives them their meaning. Everything else
// is resolved here: registers are numbers that are dense within their function, labels are instruction indices, variables and
// parameters have sizes and offsets.
//
//   Module ── variables   .global, .const, .shared outside functions
//          └─ functions   .entry and .func ── parameters, variables (.shared, .local, .param), registers, instructions
//
// Section names in comments are those of NVIDIA's "Parallel Thread Execution ISA".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "error.h"

namespace sim::ptx {

/// For a text that is not PTX, or PTX that this parser does not know. `what()` names the line and what was expected there.
class PtxError : public Error {
 public:
  PtxError(uint32_t line, const std::string& message, Fault fault = Fault::invalid_ptx)
      : Error("PTX line " + std::to_string(line) + ": " + message, fault), line(line) {}

  const uint32_t line;
};

/// Types of registers and variables ("Fundamental Types", "Packed Data Types").
// clang-format off
enum class Type : uint8_t {
  none, pred,
  b8, b16, b32, b64, b128,
  u8, u16, u32, u64,
  s8, s16, s32, s64,
  f16, f16x2, bf16, bf16x2, f32, f64,
};
// clang-format on

/// Bytes that a value of the type takes; 0 for a predicate, which has no place in memory.
uint32_t size_of(Type type);
/// The type's name without the dot, as in "f32".
std::string_view name_of(Type type);

/// "State Spaces". Registers and special registers are operands of their own kind and no space.
enum class StateSpace : uint8_t { none, global, constant, shared, local, param };

/// "Special Registers". `name_of` gives the PTX name.
// clang-format off
enum class Special : uint8_t {
  tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z,
  laneid, warpid, nwarpid, smid, nsmid, gridid, warp_size,
  clusterid_x, clusterid_y, clusterid_z, nclusterid_x, nclusterid_y, nclusterid_z,
  cluster_ctaid_x, cluster_ctaid_y, cluster_ctaid_z, cluster_nctaid_x, cluster_nctaid_y, cluster_nctaid_z,
  cluster_ctarank, cluster_nctarank, is_explicit_cluster,
  lanemask_eq, lanemask_le, lanemask_lt, lanemask_ge, lanemask_gt,
  clock, clock_hi, clock64, globaltimer, globaltimer_lo, globaltimer_hi,
  dynamic_smem_size, total_smem_size, aggr_smem_size, reserved_smem_offset_begin, reserved_smem_offset_end,
  reserved_smem_offset_cap, reserved_smem_offset_0, reserved_smem_offset_1, current_graph_exec,
  envreg0, envreg1, envreg2, envreg3, envreg4, envreg5, envreg6, envreg7, envreg8, envreg9, envreg10,
  envreg11, envreg12, envreg13, envreg14, envreg15, envreg16, envreg17, envreg18, envreg19, envreg20, envreg21,
  envreg22, envreg23, envreg24, envreg25, envreg26, envreg27, envreg28, envreg29, envreg30, envreg31,
};
// clang-format on
std::string_view name_of(Special special);

/// What a name stands for: an index into one of the module's or the function's lists.
struct Symbol {
  enum class Kind : uint8_t {
    none,
    module_variable,    ///< Module::variables
    function_variable,  ///< Function::variables of the function that the instruction belongs to
    parameter,          ///< Function::parameters, likewise
    result,             ///< Function::results: the return value of a device function
    function,           ///< Module::functions
    prototype,          ///< Function::prototypes, of an indirect call
    branch_targets,     ///< Function::branch_targets, of brx.idx
  };
  Kind kind = Kind::none;
  uint32_t index = 0;

  bool operator==(const Symbol&) const = default;
};

/// One operand ("Instruction Operands").
///
///   %r1  !%p1                 reg: index, negated
///   %tid.x                    special
///   7  -1  0x10               integer: bits, two's complement in 64 bits
///   0f3F800000                float32: bits, of the FP32 value
///   0d3FF0000000000000  1.5   float64: bits, of the FP64 value
///   $L__BB0_2                 label: index of the instruction; one past the last where the label ends the function
///   table  table+8            symbol: symbol, offset
///   [%rd1+4] [table+8] [16]   address: index (has_register) or symbol, offset; no register, no symbol: an absolute address
///   [%rd1, {%r1, %r2}]        address with elements: a tensor map's address and one vector (coordinates), or two (im2col)
///   {%f1, %f2}                vector: elements
///   %r1|%p1                   pair: elements[0] and [1], the destination and its predicate
///   (param0, param1)          list: elements; only in calls
///   _                         sink: a result that is discarded
struct Operand {
  enum class Kind : uint8_t {
    reg,
    special,
    integer,
    float32,
    float64,
    label,
    symbol,
    address,
    vector,
    pair,
    list,
    sink
  };
  Kind kind = Kind::sink;
  bool negated = false;       ///< reg: `!%p`
  bool has_register = false;  ///< address: the base is register `index`
  Special special{};
  uint32_t index = 0;  ///< reg, address: register; label: instruction
  Symbol symbol;       ///< symbol, address
  int64_t offset = 0;  ///< symbol, address: bytes
  uint64_t bits = 0;   ///< integer, float32, float64
  std::vector<Operand> elements;
};

/// `@%p` or `@!%p` ("Predicated Execution").
struct Guard {
  static constexpr uint32_t always = UINT32_MAX;
  uint32_t reg = always;
  bool negated = false;
};

/// ld.global.nc.v4.f32 {%f1, ...}, [%rd1+16];
///   mnemonic "ld", modifiers "global" "nc" "v4" "f32", operands in the order of the text.
///
/// A call always has three operands or four: list of results (may be empty), callee (symbol of a function, or a register),
/// list of arguments (may be empty), and for an indirect call the symbol of its prototype.
struct Instruction {
  std::string_view mnemonic;                ///< into Module::text
  std::vector<std::string_view> modifiers;  ///< without dots; "shared::cta", "L2::128B" and the like are one modifier
  std::string_view text;                    ///< the whole statement, for reports
  Guard guard;
  std::vector<Operand> operands;
  uint32_t line = 0;      ///< in the PTX text, from 1
  int32_t location = -1;  ///< Function::locations, or -1 where there is none (compiled without -lineinfo)
};

/// `.loc` ("Debugging Directives"): where in the CUDA source.
struct SourceLocation {
  uint32_t file = 0;  ///< Module::files
  uint32_t line = 0;
  uint32_t column = 0;
  int32_t inlined_at = -1;  ///< Function::locations of the call that this was inlined into, or -1
};

/// A register of one function. Two blocks `{ .reg .b32 t; ... }` declare two registers of the same name.
struct Register {
  std::string name;
  Type type = Type::none;
};

/// The address of a variable or function inside an initialiser: `tab[2] = {f, generic(x)+4}`.
struct Relocation {
  uint64_t offset = 0;  ///< in the variable's bytes
  uint32_t bytes = 8;
  Symbol symbol;  ///< a module variable or a function
  int64_t addend = 0;
  bool generic = false;  ///< a generic address; else one in the state space of the symbol
};

/// A variable, or a parameter ("Variables", "Function Parameters").
struct Variable {
  std::string name;
  StateSpace space = StateSpace::none;
  Type type = Type::none;  ///< of one element
  uint32_t vector = 1;     ///< .v2, .v4
  uint32_t alignment = 1;  ///< bytes
  uint64_t size = 0;       ///< bytes of the whole; 0 for `extern .shared x[]`
  bool is_array = false;
  bool is_extern = false;   ///< with space shared and size 0: the launch's dynamic shared memory
  bool is_managed = false;  ///< .attribute(.managed)

  /// Where it lies in its space.
  ///   .param   from the start of the parameters (an entry's: what the launch lays out), the results, or the call's scratch
  ///   .shared  from the start of the block's shared memory; dynamic: Function::shared_bytes of the entry that runs
  ///   .local   from the start of the function's frame
  ///   .global, .const   from the start of the module's own variables, if they are allocated in one piece
  uint64_t offset = 0;

  std::vector<std::byte> initial;  ///< empty: zeros; else `size` bytes
  std::vector<Relocation> relocations;
  uint32_t line = 0;
};

/// `.callprototype`: what an indirect call passes.
struct Prototype {
  std::string name;
  std::vector<Variable> results;
  std::vector<Variable> parameters;
};

/// A kernel (.entry) or a device function (.func).
struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration =
      false;  ///< no body: defined further down, or by the system (vprintf, __assertfail, malloc, free)
  /// Why its body could not be read; "" where it could. It then has no instructions and must not run. The rest of the module is
  /// as good as without it.
  std::string refused;
  uint32_t line = 0;

  std::vector<Variable> parameters;
  uint64_t parameter_bytes = 0;  ///< of an entry: the size of the buffer that a launch fills
  std::vector<Variable> results;
  uint64_t result_bytes = 0;

  std::vector<Register> registers;
  std::vector<Variable> variables;  ///< .shared, .local and .param of the body
  std::vector<Instruction> instructions;
  std::map<uint32_t, std::string> labels;  ///< instruction -> the label before it, for listings
  std::vector<SourceLocation> locations;
  std::vector<Prototype> prototypes;
  std::vector<std::vector<uint32_t>> branch_targets;  ///< instruction indices

  uint64_t local_bytes = 0;       ///< frame of .local variables
  uint64_t call_param_bytes = 0;  ///< .param variables of the body: what calls pass and return
  /// Static shared memory of a block. For an entry: all that it and what it calls declare; dynamic memory starts here,
  /// rounded up to the alignment of the extern array.
  uint64_t shared_bytes = 0;
  uint32_t dynamic_shared_alignment = 1;  ///< the largest of the extern arrays'

  // "Performance-Tuning Directives" and "Cluster Dimension Directives"; 0: not given.
  std::array<uint32_t, 3> maxntid{};
  std::array<uint32_t, 3> reqntid{};
  std::array<uint32_t, 3> reqnctapercluster{};
  uint32_t minnctapersm = 0;
  uint32_t maxnreg = 0;
  uint32_t maxclusterrank = 0;
  bool explicitcluster = false;
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;
  std::string target;  ///< "sm_90a"
  uint32_t address_size = 64;
  std::map<uint32_t, std::string> files;  ///< .file: number -> path
  std::vector<Variable> variables;
  std::vector<Function> functions;

  std::shared_ptr<const std::string> text;  ///< what the views point into

  /// Null where there is none. A function that is declared and defined is one entry of the list.
  const Function* find_function(std::string_view name) const;
  const Variable* find_variable(std::string_view name) const;

  /// "kernels/01_naive.cu:29" of the source line, with "(inlined into …)" where it was; "" where it is not known.
  std::string source_of(const Function& function, const Instruction& instruction) const;
};

}  // namespace sim::ptx
