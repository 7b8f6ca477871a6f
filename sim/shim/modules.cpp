// Registration, as nvcc's start-up code of every translation unit calls it, and loading at the first use.
#include "shim/modules.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "fatbin.h"
#include "ptx/parser.h"
#include "text.h"

namespace sim {
namespace {

std::map<Binary*, std::unique_ptr<Binary>> binaries;
std::map<const void*, std::unique_ptr<Kernel>> kernels;      // by the host's stub
std::map<const void*, std::unique_ptr<Variable>> variables;  // by the host's shadow

/// The newest PTX that the described GPU can run, as the driver chooses it.
const PtxImage& choose(const std::vector<PtxImage>& images) {
  const unsigned sm = static_cast<unsigned>(described_gpu().sm);
  if (const PtxImage* const best = newest_for(sm, images)) return *best;
  std::string found;
  for (const PtxImage& image : images) found += (found.empty() ? "; it holds that for " : ", ") + image.target.name();
  print(stderr,
        "simulator: this program holds no PTX that an sm_{0} GPU can run{1}; build it with "
        "-gencode arch=compute_{0},code=compute_{0}\n",
        sm, found);
  throw CallFailed{cudaErrorNoKernelImageForDevice};
}

Variable* registered_variable(const Binary& binary, const std::string& name) {
  for (const auto& [shadow, variable] : variables)
    if (variable->binary == &binary && variable->name == name) return variable.get();
  return nullptr;
}

/// Memory for the module's .global and .const variables, with their initial values.
void define_variables(Binary& binary) {
  const ptx::Module& module = *binary.module;
  DeviceMemory& memory = runtime().memory;
  std::vector<uint64_t> addresses(module.variables.size());
  for (size_t i = 0; i < module.variables.size(); ++i) {
    const ptx::Variable& declared = module.variables[i];
    if (declared.space != ptx::StateSpace::global && declared.space != ptx::StateSpace::constant) continue;
    if (declared.is_extern)
      throw Error(
          formatted("variable '{}' is defined in another file: separate compilation (-rdc=true)", declared.name));
    Variable* const registered = registered_variable(binary, declared.name);
    addresses[i] = registered ? registered->address : 0;  // a managed variable has its address already
    if (!addresses[i]) {
      const bool constant = declared.space == ptx::StateSpace::constant;
      const MemoryKind kind = constant ? MemoryKind::constant : MemoryKind::variable;
      addresses[i] = memory.allocate(declared.size, kind, declared.name,
                                     std::max<size_t>(declared.alignment, DeviceMemory::alignment));
      require(addresses[i], cudaErrorMemoryAllocation);
    }
    void* const bytes = reinterpret_cast<void*>(addresses[i]);
    if (declared.initial.empty())
      std::memset(bytes, 0, declared.size);
    else
      std::memcpy(bytes, declared.initial.data(), declared.size);
    memory.define_variable(&module, declared.name, addresses[i]);
    if (registered) registered->address = addresses[i];
  }
  for (size_t i = 0; i < module.variables.size(); ++i) {  // now that every address is known
    for (const ptx::Relocation& relocation : module.variables[i].relocations) {
      const bool function = relocation.symbol.kind == ptx::Symbol::Kind::function;
      const uint64_t address =
          function ? function_address(relocation.symbol.index) : addresses[relocation.symbol.index];
      if (!address)
        throw Error(formatted("variable '{}' is initialised with an address in shared or local memory",
                              module.variables[i].name));
      const uint64_t value = address + relocation.addend;
      std::memcpy(reinterpret_cast<void*>(addresses[i] + relocation.offset), &value, relocation.bytes);
    }
  }
}

/// What ptxas made of the kernels, in the machine code that the described GPU would run.
void read_usage(Binary& binary) {
  const std::vector<CodeImage> images = code_images(binary.wrapper);
  if (const CodeImage* const best = newest_for(static_cast<unsigned>(described_gpu().sm), images))
    binary.usage = kernel_usage(best->elf);
}

void load(Binary& binary) {
  if (binary.module) return;
  require(binary.failed == cudaSuccess, binary.failed);
  try {
    const std::vector<PtxImage> images = ptx_images(binary.wrapper);
    const PtxImage& chosen = choose(images);
    binary.ptx_arch = static_cast<int>(chosen.target.arch);
    binary.module = std::make_unique<ptx::Module>(ptx::parse(chosen.text));
    define_variables(binary);
    read_usage(binary);
  } catch (const CallFailed& failed) {
    binary.failed = failed.status;
    throw;
  } catch (const Error& error) {  // no kernel has run, so this error does not stick
    print(stderr, "simulator: {}\n", error.what());
    binary.module.reset();
    binary.failed = status_of(error.fault);
    throw CallFailed{binary.failed};
  }
}

/// __launch_bounds__ (.maxntid) and __block_size__ (.reqntid) limit the threads of a block.
int max_threads(const ptx::Function& function) {
  int threads = Gpu::max_threads_per_block;
  for (const auto& size : {function.maxntid, function.reqntid}) {
    const uint32_t product = std::max(size[0], 1u) * std::max(size[1], 1u) * std::max(size[2], 1u);
    if (size[0]) threads = std::min<int>(threads, product);
  }
  return threads;
}

void load(Kernel& kernel) {
  load(*kernel.binary);
  if (kernel.function) return;
  const ptx::Function* const function = kernel.binary->module->find_function(kernel.name);
  require(function && function->is_entry, cudaErrorInvalidDeviceFunction);
  kernel.function = function;
  kernel.program.reset();
  kernel.smem_bytes = static_cast<int>(function->shared_bytes);
  kernel.max_threads = max_threads(*function);
  kernel.max_dynamic_smem = Gpu::smem_per_block - kernel.smem_bytes;
  const auto usage = kernel.binary->usage.find(kernel.name);
  kernel.usage = usage == kernel.binary->usage.end() ? KernelUsage{} : usage->second;
}

}  // namespace

Kernel& find_kernel(const void* function) {
  const auto by_stub = kernels.find(function);
  if (by_stub != kernels.end()) {
    load(*by_stub->second);
    return *by_stub->second;
  }
  for (auto& [stub, kernel] : kernels) {
    if (kernel.get() != function) continue;
    load(*kernel);
    return *kernel;
  }
  throw CallFailed{cudaErrorInvalidDeviceFunction};
}

Variable& find_variable(const void* symbol) {
  const auto found = variables.find(symbol);
  require(found != variables.end(), cudaErrorInvalidSymbol);
  load(*found->second->binary);
  require(found->second->address, cudaErrorInvalidSymbol);
  return *found->second;
}

}  // namespace sim

using namespace sim;

CUDA_API void** __cudaRegisterFatBinary(void* wrapper) {
  const std::lock_guard lock(runtime().mutex);
  auto binary = std::make_unique<Binary>(Binary{wrapper});
  Binary* const handle = binary.get();
  binaries[handle] = std::move(binary);
  return reinterpret_cast<void**>(handle);
}

CUDA_API void __cudaRegisterFatBinaryEnd(void**) {}

CUDA_API void __cudaUnregisterFatBinary(void** handle) {
  const std::lock_guard lock(runtime().mutex);
  Binary* const binary = reinterpret_cast<Binary*>(handle);
  std::erase_if(kernels, [&](const auto& entry) { return entry.second->binary == binary; });
  std::erase_if(variables, [&](const auto& entry) { return entry.second->binary == binary; });
  binaries.erase(binary);
}

CUDA_API char __cudaInitModule(void** handle) {
  return call([&] { load(*reinterpret_cast<Binary*>(handle)); }) == cudaSuccess;
}

CUDA_API void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*, uint3*,
                                     dim3*, dim3*, int*) {
  const std::lock_guard lock(runtime().mutex);
  kernels[stub] = std::make_unique<Kernel>(Kernel{reinterpret_cast<Binary*>(handle), name});
}

CUDA_API void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int, size_t bytes, int constant,
                                int) {
  const std::lock_guard lock(runtime().mutex);
  variables[shadow] = std::make_unique<Variable>(
      Variable{reinterpret_cast<Binary*>(handle), name, bytes, constant ? MemoryKind::constant : MemoryKind::variable});
}

/// The host reads a managed variable through a pointer that the runtime sets.
CUDA_API void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name, int, size_t bytes, int,
                                       int) {
  const std::lock_guard lock(runtime().mutex);
  const uint64_t address = runtime().memory.allocate(bytes, MemoryKind::managed, name);
  *pointer = reinterpret_cast<void*>(address);
  variables[pointer] = std::make_unique<Variable>(
      Variable{reinterpret_cast<Binary*>(handle), name, bytes, MemoryKind::managed, address});
}

/// Also after a fault: the stub asks once in the life of the program.
CUDA_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  const std::lock_guard lock(runtime().mutex);
  const auto found = kernels.find(stub);
  if (found == kernels.end()) return record(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(found->second.get());
  return cudaSuccess;
}

CUDA_API cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* stub) { return __cudaGetKernel(kernel, stub); }

/// Memory is freed, modules are unloaded (variables get their initial values again), and a fault is forgotten.
CUDA_API cudaError_t cudaDeviceReset() {
  const std::lock_guard lock(runtime().mutex);
  runtime().sticky = cudaSuccess;
  return call([] {
    for (auto& [stub, kernel] : kernels) kernel->function = nullptr;
    for (auto& [shadow, variable] : variables)
      if (variable->kind != MemoryKind::managed) variable->address = 0;
    for (auto& [handle, binary] : binaries) binary->module.reset();
    runtime().memory.clear();
  });
}
