// Private to the decoder: the state in which one kernel becomes a Program. decode.cpp has the frame and the common
// instructions; a family of instructions that is large or special has a file of its own, decode_*.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "error.h"
#include "executor/executor.h"
#include "executor/lanes.h"
#include "text.h"

namespace sim {

struct MmaOptions;

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ptx::Function& kernel) : module_(module), kernel_(kernel) {}

  Program run();

 private:
  using Operand = ptx::Operand;
  struct Place {
    uint32_t first_op = 0;
    uint32_t parameters = 0, results = 0, call_params = 0, locals = 0;  ///< in a lane's frame
    std::vector<uint32_t> registers;                                    ///< in the register file
    uint32_t number = 0;                                                ///< in Program::callees
  };

  /// Ends the decoding with an error that names the instruction.
  [[noreturn]] void fail(const std::string& what) const;

  // --- functions ---------------------------------------------------------------------------------------------------------

  void place(const ptx::Function& function);
  const ptx::Function* callee(const ptx::Instruction& call) const;
  void collect_calls(const ptx::Function& function);
  /// Every function that a call of this prototype may reach: of all whose address is taken, those with its signature.
  std::vector<const ptx::Function*> pointed_at(const ptx::Prototype& prototype);
  /// Registers and frames of a function exist once per lane. One that can be active twice must keep them.
  std::set<const ptx::Function*> that_keep() const;
  template <class Signature>
  uint32_t signature_of(const Signature& of);
  uint32_t frame(uint64_t bytes);
  /// All parts of the frame are aligned as the local variable that asks for most.
  void align_frame();
  void layout(const ptx::Function& function, bool keeps);

  // --- the register file -------------------------------------------------------------------------------------------------

  /// A predicate is one word for the warp.
  static uint8_t register_bytes(ptx::Type type) {
    return type == ptx::Type::pred ? predicate : uint8_t(ptx::size_of(type));
  }
  uint32_t allocate(uint8_t bytes);
  uint32_t preset(Preset::What what, uint8_t bytes, uint64_t value = 0, const std::string& name = "");
  uint32_t constant(uint64_t value, uint8_t bytes) { return preset(Preset::constant, bytes, value); }

  uint32_t reg(uint32_t index) const { return places_.at(function_).registers.at(index); }
  uint8_t reg_bytes(uint32_t index) const { return register_bytes(function_->registers.at(index).type); }

  const ptx::Variable& variable(const ptx::Symbol& s) const;
  /// The register that holds a variable's address in its state space.
  uint32_t address_of(const ptx::Symbol& s, uint64_t addend, uint8_t bytes);
  uint32_t special(const Operand& operand, uint8_t bytes);

  /// Where an operand that is read lies. `bytes` is the width that the instruction expects. With 0 it becomes the
  /// register's own.
  uint32_t read(const Operand& operand, uint8_t& bytes);
  uint32_t read_bytes(const Operand& operand, uint8_t bytes) { return read(operand, bytes); }
  /// A predicate that is read and may be negated; the instruction's flag_not_c then says so.
  uint32_t read_predicate(Op& op, Operand operand);
  /// Where a result goes; for `_`, a register that nobody reads.
  uint32_t write(const Operand& operand, uint8_t bytes);

  // --- the instruction at hand ---------------------------------------------------------------------------------------------

  const ptx::SourceLocation* own_location();
  uint32_t source();
  bool has(std::string_view modifier) const {
    const auto& all = instruction_->modifiers;
    return std::find(all.begin(), all.end(), modifier) != all.end();
  }
  const Operand& operand(size_t i) const {
    if (i >= instruction_->operands.size()) fail("too few operands");
    return instruction_->operands[i];
  }
  size_t operands() const { return instruction_->operands.size(); }
  /// Every modifier must be one of these.
  void only(std::initializer_list<std::string_view> allowed) const;
  /// Fails, in the words of ptxas, where the module's target is below sm_89, the first with the formats of 8 bits.
  void require_fp8(const char* feature) const;

  Space space_of(std::initializer_list<std::string_view> allowed) const;
  /// An address `[...]`: op.o.a, op.displacement, op.address_bytes.
  void address(Op& op, const Operand& a);
  Address address(const Operand& a);
  /// .param: of a kernel, memory that the launch filled; of a function, a place in the lane's frame.
  void resolve_param(Op& op, const Operand& a);
  /// The type of one element of a memory access: op.bytes, op.is_signed.
  void element_type(Op& op, std::string_view type);
  Element element(const Op& op, const Operand& value, bool is_load);

  // --- instructions --------------------------------------------------------------------------------------------------------

  Op decode_one();
  Op lanes(Op& op);
  Op branch(Op& op);
  Op call(Op& op);
  Op call_indirect(Op& op);
  /// What a call copies into the callee's parameters, then what out of its results.
  void arguments(Op& op, const std::vector<ptx::Variable>& parameters, uint32_t parameters_at,
                 const std::vector<ptx::Variable>& results, uint32_t results_at);
  bool stack(Op& op);
  Op load_store(Op& op, bool is_load);
  void reduction(Op& op) const;
  Op atomic(Op& op, bool has_result);
  Op cvta(Op& op);
  /// mov of vectors and of what changes while a warp runs; false for any other mov.
  bool move_special(Op& op);
  Op warp(Op& op);
  Op barrier(Op& op);
  // decode_async.cpp
  void async_store(Op& op);
  Op async_copy(Op& op);
  // decode_matrix.cpp
  bool matrix(Op& op);
  void matrix_move(Op& op);
  void fragment_move(Op& op);
  void multiply(Op& op);
  void list(Op& op, const Operand& registers, size_t count, uint8_t bytes, bool is_result);

  // decode_hopper.cpp
  /// Instructions that are new in sm_90; false for any other.
  bool hopper(Op& op);
  void cluster_barrier(Op& op);
  void map_address(Op& op);
  void mbarrier(Op& op);
  void fence_proxy(Op& op);
  void bulk_copy(Op& op);
  void bulk_group(Op& op);
  void wgmma(Op& op);
  void mark_accumulators();
  void set_registers(Op& op);
  /// An address beside the first one; a tensor map's may have coordinates, which go to op.elements.
  Address other_address(Op& op, const Operand& a);

  // decode_blackwell.cpp
  /// Instructions that are new in sm_100; false for any other.
  bool blackwell(Op& op);
  void launch_cancel(Op& op);
  void launch_query(Op& op);
  void require_tensor_memory() const;
  void cta_group();
  Address tensor_address(const Operand& a);
  void tensor_allocation(Op& op, std::string_view what);
  void tensor_move(Op& op, bool is_load);
  void tensor_multiply(Op& op);
  void collector_use(MmaOptions& options, std::string_view modifier);
  std::pair<std::string_view, std::string_view> scale_vector(MmaOptions& options);
  void tensor_copy(Op& op);
  void tensor_shift(Op& op);
  void tensor_commit(Op& op);

  const ptx::Module& module_;
  const ptx::Function& kernel_;
  Program program_;
  const ptx::Function* function_ = nullptr;
  const ptx::Instruction* instruction_ = nullptr;
  std::vector<const ptx::Function*> functions_;
  std::map<const ptx::Function*, Place> places_;
  std::map<std::pair<const ptx::Function*, uint32_t>, std::pair<uint32_t, uint32_t>>
      extents_;  ///< first and last line per file
  std::map<const ptx::Function*, std::set<const ptx::Function*>> calls_;
  std::map<std::vector<uint64_t>, uint32_t> signatures_;
  std::map<std::tuple<Preset::What, uint8_t, uint64_t, std::string>, uint32_t> presets_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> source_index_;
  uint32_t next_op_ = 0;
  bool uses_stack_ = false;
  uint32_t frame_align_ = 16;
};

}  // namespace sim
