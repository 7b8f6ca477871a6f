#include "fatbin.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>

#include "error.h"
#include "tests/nvcc.h"

namespace sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char program[] = "__global__ void fill(int* p) { p[threadIdx.x] = 7; }\n";

/// Section .nv_fatbin of an object file.
std::vector<std::byte> container_of(const std::string& object) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  const auto section = [&](size_t i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + header.e_shoff + i * header.e_shentsize, sizeof section);
    return section;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (size_t i = 0; i < header.e_shnum; ++i)
    if (object.data() + names.sh_offset + section(i).sh_name == std::string(".nv_fatbin")) {
      std::vector<std::byte> bytes(section(i).sh_size);
      std::memcpy(bytes.data(), object.data() + section(i).sh_offset, bytes.size());
      return bytes;
    }
  throw std::runtime_error("no section .nv_fatbin");
}

std::vector<std::byte> container(const std::string& options) {
  return container_of(test::compiled_text(program, "-c " + options));
}

std::string failure_of(std::span<const std::byte> bytes) {
  try {
    ptx_images(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class CompressedAs : public ::testing::TestWithParam<const char*> {};

TEST_P(CompressedAs, GivesTheText) {
  const auto bytes = container(std::string("-gencode arch=compute_80,code=compute_80 --compress-mode=") + GetParam());
  const auto images = ptx_images(bytes);
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].target, Target{80});
  EXPECT_THAT(images[0].text, HasSubstr(".version"));
  EXPECT_THAT(images[0].text, HasSubstr(".target sm_80"));
  EXPECT_THAT(images[0].text, HasSubstr("_Z4fillPi"));
  EXPECT_EQ(images[0].text.find('\0'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Fatbin, CompressedAs, ::testing::Values("default", "none", "speed", "balance", "size"),
                         [](const auto& name) { return std::string(name.param); });

TEST(Fatbin, TellsEveryArchitecture) {
  const auto bytes = container(
      "-gencode arch=compute_80,code=[compute_80,sm_80] -gencode arch=compute_90,code=compute_90 "
      "-gencode arch=compute_90a,code=[compute_90a,sm_90a] -gencode arch=compute_120f,code=compute_120f");
  std::vector<std::string> found;
  for (const PtxImage& image : ptx_images(bytes)) {
    found.push_back(image.target.name());
    EXPECT_THAT(image.text, HasSubstr(".target " + found.back()));
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("sm_80", "sm_90", "sm_90a", "sm_120f"));
}

template <class Image>
std::string newest(unsigned sm, const std::vector<Target>& targets) {
  std::vector<Image> images;
  for (const Target& target : targets) images.push_back({target, ""});
  const Image* const found = newest_for(sm, images);
  return found ? found->target.name() : "none";
}

TEST(Fatbin, TheNewestPtxThatAGpuRuns) {
  const std::vector<Target> targets{
      {75}, {80}, {90}, {90, Target::alone}, {100, Target::family}, {120, Target::family}};
  const std::pair<unsigned, const char*> expected[] = {{70, "none"},     {75, "sm_75"},  {80, "sm_80"},
                                                       {89, "sm_80"},    {90, "sm_90a"}, {100, "sm_100f"},
                                                       {103, "sm_100f"}, {110, "sm_90"}, {120, "sm_120f"}};
  for (const auto& [sm, name] : expected) EXPECT_EQ(newest<PtxImage>(sm, targets), name) << sm;
  EXPECT_EQ(newest<PtxImage>(120, {{90, Target::alone}}), "none");
}

TEST(Fatbin, TheNewestMachineCodeThatAGpuRuns) {
  const std::vector<Target> targets{{80}, {86}, {90}, {90, Target::alone}};
  const std::pair<unsigned, const char*> expected[] = {
      {75, "none"}, {80, "sm_80"}, {89, "sm_86"}, {90, "sm_90a"}, {120, "none"}};
  for (const auto& [sm, name] : expected) EXPECT_EQ(newest<CodeImage>(sm, targets), name) << sm;
}

TEST(Fatbin, HasNoPtxWhereThereIsMachineCodeAlone) {
  EXPECT_TRUE(ptx_images(container("-gencode arch=compute_90a,code=sm_90a")).empty());
}

TEST(Fatbin, FollowsTheWrapper) {
  const auto bytes = container("-gencode arch=compute_80,code=compute_80");
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* container;
    const void* unused = nullptr;
  } wrapper{.container = bytes.data()};
  EXPECT_EQ(ptx_images(&wrapper).size(), 1u);

  const auto failure = [&] {
    try {
      ptx_images(&wrapper);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  wrapper.version = 2;
  EXPECT_THAT(failure(), HasSubstr("-rdc=true"));
  wrapper.version = 1;
  wrapper.magic = 0;
  EXPECT_THAT(failure(), HasSubstr("wrapper"));
}

// Whatever is cut off or changed: an error or a text, and nothing read outside (run with -fsanitize=address to see that).
TEST(Fatbin, SaysWhatIsDamaged) {
  for (const char* mode : {"default", "speed", "none"}) {
    const auto bytes = container(std::string("-gencode arch=compute_80,code=compute_80 --compress-mode=") + mode);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + size);
      // What follows the container in the section is alignment.
      uint64_t container_bytes;
      std::memcpy(&container_bytes, bytes.data() + 8, 8);
      if (size < 16 + container_bytes) {
        EXPECT_THAT(failure_of(cut), StartsWith("fat binary: ")) << size;
      }
    }
    for (size_t i = 0; i < bytes.size(); ++i)
      for (const unsigned mask : {0x01u, 0x80u, 0xffu}) {
        std::vector<std::byte> changed = bytes;
        changed[i] ^= std::byte{static_cast<unsigned char>(mask)};
        const std::string failure = failure_of(changed);
        if (!failure.empty()) {
          EXPECT_THAT(failure, StartsWith("fat binary: "));
        }
      }
  }
}

}  // namespace
}  // namespace sim
