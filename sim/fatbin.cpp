#include "fatbin.h"

#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "error.h"

namespace sim {
namespace {

struct Wrapper {
  static constexpr uint32_t expected_magic = 0x466243B1;
  uint32_t magic;
  uint32_t version;       // 1; 2: relocatable device code
  const void* container;  // 8-byte aligned
  const void* unused;
};

struct Container {
  static constexpr uint32_t expected_magic = 0xBA55ED50;
  uint32_t magic;
  uint16_t version;      // 1
  uint16_t header_size;  // 16
  uint64_t size;         // of all entries
};

struct Entry {
  uint16_t kind;
  uint16_t version;
  uint32_t header_size;      // from here to the payload
  uint64_t payload_size;     // with padding; the next entry comes after it
  uint32_t compressed_size;  // without padding; 0: not compressed
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t arch;
  uint32_t name_offset, name_size;
  uint64_t flags;
  uint64_t zero;
  uint64_t raw_size;  // 0: not compressed
};
static_assert(sizeof(Wrapper) == 24 && sizeof(Container) == 16 && sizeof(Entry) == 64, "as nvcc lays them out");

constexpr uint16_t kind_ptx = 1, kind_elf = 2;
constexpr uint64_t flag_lz4 = 0x2000;       // --compress-mode=speed
constexpr uint64_t flag_zstd = 0x8000;      // the default
constexpr uint64_t flag_alone = 0x100000;   // sm_90a
constexpr uint64_t flag_family = 0x200000;  // sm_100f
constexpr uint64_t max_image_bytes = uint64_t{1} << 30;

[[noreturn]] void damaged(const std::string& what) { throw Error("fat binary: " + what, Fault::invalid_ptx); }

template <typename T>
T read(std::span<const std::byte> bytes, const char* what) {
  if (bytes.size() < sizeof(T)) damaged(std::string("cut off within the ") + what);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

void expand_zstd(std::span<const std::byte> from, std::string& to) {
  const size_t bytes = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
  if (ZSTD_isError(bytes)) damaged(std::string("its PTX cannot be decompressed: ") + ZSTD_getErrorName(bytes));
  if (bytes != to.size()) damaged("its PTX is shorter than announced");
}

// One LZ4 block: (literal count, match length), literals, distance of the match; a count of 15 continues in further bytes.
void expand_lz4(std::span<const std::byte> from, std::string& to) {
  size_t in = 0, out = 0;
  const auto next = [&] {
    if (in == from.size()) damaged("its PTX cannot be decompressed: the LZ4 block is cut off");
    return static_cast<uint8_t>(from[in++]);
  };
  const auto count = [&](size_t start) {
    if (start != 15) return start;
    for (;;) {
      const uint8_t more = next();
      start += more;
      if (more != 255) return start;
    }
  };
  while (in < from.size()) {
    const uint8_t token = next();
    const size_t literals = count(token >> 4);
    if (literals > from.size() - in || literals > to.size() - out)
      damaged("its PTX cannot be decompressed: bad LZ4 literals");
    std::memcpy(to.data() + out, from.data() + in, literals);
    in += literals;
    out += literals;
    if (in == from.size()) break;  // the last sequence has no match
    size_t distance = next();
    distance |= size_t{next()} << 8;
    const size_t length = count(token & 15) + 4;
    if (!distance || distance > out || length > to.size() - out)
      damaged("its PTX cannot be decompressed: bad LZ4 match");
    for (size_t i = 0; i < length; ++i, ++out) to[out] = to[out - distance];  // may overlap
  }
  if (out != to.size()) damaged("its PTX is shorter than announced");
}

std::string content_of(const Entry& entry, std::span<const std::byte> payload) {
  std::string text;
  if (!entry.compressed_size) {
    text.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  } else {
    if (entry.compressed_size > payload.size()) damaged("a compressed entry is longer than its place");
    if (entry.raw_size > max_image_bytes) damaged("an entry of more than 1 GiB");
    text.resize(entry.raw_size);
    payload = payload.first(entry.compressed_size);
    if (entry.flags & flag_zstd)
      expand_zstd(payload, text);
    else if (entry.flags & flag_lz4)
      expand_lz4(payload, text);
    else
      throw Error(
          "fat binary: its PTX is compressed in a way that the simulator does not know; compile with "
          "--compress-mode=none");
  }
  return text;
}

Target target_of(const Entry& entry) {
  return {entry.arch, entry.flags & flag_alone    ? Target::alone
                      : entry.flags & flag_family ? Target::family
                                                  : Target::later};
}

/// Whether `target` was made for a GPU of capability `sm`, or for an earlier one of its major version.
bool is_of_family(const Target& target, unsigned sm) {
  return target.scope == Target::alone ? target.arch == sm : target.arch <= sm && target.arch / 10 == sm / 10;
}

template <class Image, class Runs>
const Image* newest(const std::vector<Image>& images, Runs runs) {
  const Image* best = nullptr;
  for (const Image& image : images) {
    if (!runs(image.target)) continue;
    const auto rank = [](const Image& image) { return std::pair(image.target.arch, image.target.scope); };
    if (!best || rank(image) > rank(*best)) best = &image;
  }
  return best;
}

std::span<const std::byte> container_of(const void* wrapper_address) {
  if (!wrapper_address) damaged("no wrapper");
  Wrapper wrapper;
  std::memcpy(&wrapper, wrapper_address, sizeof wrapper);
  if (wrapper.magic != Wrapper::expected_magic) damaged("this is no fat binary's wrapper");
  if (wrapper.version != 1)
    throw Error("fat binary: relocatable device code (nvcc -rdc=true or -dc) is not supported; compile without it");
  if (!wrapper.container) damaged("the wrapper is empty");
  Container container;
  std::memcpy(&container, wrapper.container, sizeof container);
  if (container.magic != Container::expected_magic) damaged("the wrapper holds no container");
  return {static_cast<const std::byte*>(wrapper.container), container.header_size + container.size};
}

/// use(entry, payload) for each entry of that kind.
template <class Use>
void each_entry(std::span<const std::byte> bytes, uint16_t kind, Use use) {
  const auto container = read<Container>(bytes, "container's header");
  if (container.magic != Container::expected_magic) damaged("this is no container");
  if (container.version != 1 || container.header_size < sizeof(Container))
    throw Error("fat binary: container version " + std::to_string(container.version) + " is not known; 1 is");
  if (container.header_size > bytes.size() || container.size > bytes.size() - container.header_size)
    damaged("the container is cut off");
  bytes = bytes.subspan(container.header_size, container.size);

  while (!bytes.empty()) {
    const auto entry = read<Entry>(bytes, "header of an entry");
    if (entry.header_size < sizeof(Entry) || entry.header_size > bytes.size() ||
        entry.payload_size > bytes.size() - entry.header_size)
      damaged("an entry is longer than the container");
    if (entry.kind == kind) use(entry, bytes.subspan(entry.header_size, entry.payload_size));
    bytes = bytes.subspan(entry.header_size + entry.payload_size);
  }
}

}  // namespace

std::string Target::name() const {
  return "sm_" + std::to_string(arch) + (scope == alone ? "a" : scope == family ? "f" : "");
}

std::vector<PtxImage> ptx_images(const void* wrapper) { return ptx_images(container_of(wrapper)); }

std::vector<PtxImage> ptx_images(std::span<const std::byte> container) {
  std::vector<PtxImage> images;
  each_entry(container, kind_ptx, [&](const Entry& entry, std::span<const std::byte> payload) {
    std::string text = content_of(entry, payload);
    text.resize(text.find_last_not_of('\0') + 1);  // padding
    images.push_back({target_of(entry), std::move(text)});
  });
  return images;
}

std::vector<CodeImage> code_images(const void* wrapper) { return code_images(container_of(wrapper)); }

std::vector<CodeImage> code_images(std::span<const std::byte> container) {
  std::vector<CodeImage> images;
  each_entry(container, kind_elf, [&](const Entry& entry, std::span<const std::byte> payload) {
    images.push_back({target_of(entry), content_of(entry, payload)});
  });
  return images;
}

const PtxImage* newest_for(unsigned sm, const std::vector<PtxImage>& images) {
  return newest(images, [&](const Target& target) {
    return target.scope == Target::later ? target.arch <= sm : is_of_family(target, sm);
  });
}

const CodeImage* newest_for(unsigned sm, const std::vector<CodeImage>& images) {
  return newest(images, [&](const Target& target) { return is_of_family(target, sm); });
}

}  // namespace sim
