#include "cubin.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace sim {
namespace {

// Entries of section .nv.info: {format, attribute, 16 bits}, and where the format says so as many bytes of value. Not
// documented; established by comparing with what cuobjdump --dump-resource-usage prints.
constexpr uint8_t format_sized = 4;
constexpr uint8_t attribute_frame_size = 0x11, attribute_register_count = 0x2f;  // value: symbol, number
constexpr uint32_t section_is_nobits = SHT_NOBITS;

template <class T>
std::optional<T> read(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string text_at(std::string_view bytes, uint64_t offset) {
  if (offset >= bytes.size()) return "";
  bytes.remove_prefix(offset);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

}  // namespace

std::map<std::string, KernelUsage> kernel_usage(std::string_view elf) {
  const auto header = read<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header->e_shnum; ++i)
    if (const auto section = read<Elf64_Shdr>(elf, header->e_shoff + i * sizeof(Elf64_Shdr)))
      sections.push_back(*section);
  const auto content = [&](size_t i) -> std::string_view {
    if (i >= sections.size() || sections[i].sh_type == section_is_nobits) return {};
    if (sections[i].sh_offset > elf.size() || sections[i].sh_size > elf.size() - sections[i].sh_offset) return {};
    return elf.substr(sections[i].sh_offset, sections[i].sh_size);
  };

  std::string_view symbols, names, info;
  for (size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].sh_type == SHT_SYMTAB) {
      symbols = content(i);
      names = content(sections[i].sh_link);
    }
    if (text_at(content(header->e_shstrndx), sections[i].sh_name) == ".nv.info") info = content(i);
  }

  std::map<std::string, KernelUsage> usage;
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = uint8_t(info[at]), attribute = uint8_t(info[at + 1]);
    const uint16_t bytes = *read<uint16_t>(info, at + 2);
    const auto index = read<uint32_t>(info, at + 4), number = read<uint32_t>(info, at + 8);
    at += 4 + (format == format_sized ? bytes : 0);
    if (format != format_sized || bytes != 8 || !index || !number) continue;
    if (attribute != attribute_frame_size && attribute != attribute_register_count) continue;
    const auto symbol = read<Elf64_Sym>(symbols, uint64_t{*index} * sizeof(Elf64_Sym));
    if (!symbol) continue;
    KernelUsage& kernel = usage[text_at(names, symbol->st_name)];
    (attribute == attribute_frame_size ? kernel.local_bytes : kernel.registers) = static_cast<int>(*number);
  }
  return usage;
}

}  // namespace sim
