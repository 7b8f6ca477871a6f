// Every function of a library of NVIDIA's, so that no program fails for a symbol alone. LIBRARY_FUNCTIONS names a file that
// sim/functions.cmake makes of a header: FUNCTION(name), and ALIAS(name, other) where `name` is `other` for another default stream.
//
// A function that nobody defines prints its name and returns an error. The symbols are weak: one that is defined takes its
// place. They are assembly, as no C function can be declared without its parameters.
#pragma once

#define FUNCTION(name)                                       \
  __asm__(                                                   \
      ".pushsection .text\n"                                 \
      ".weak " #name                                         \
      "\n"                                                   \
      ".type " #name ", @function\n" #name                   \
      ":\n"                                                  \
      "  lea 1f(%rip), %rdi\n"                               \
      "  jmp sim_not_supported_call\n"                       \
      ".size " #name ", .-" #name                            \
      "\n"                                                   \
      ".popsection\n"                                        \
      ".pushsection .rodata.str1.1, \"aMS\", @progbits, 1\n" \
      "1: .string \"" #name                                  \
      "\"\n"                                                 \
      ".popsection\n");
#define ALIAS(name, other)                 \
  __asm__(                                 \
      ".pushsection .text\n"               \
      ".weak " #name                       \
      "\n"                                 \
      ".type " #name ", @function\n" #name \
      ":\n"                                \
      "  jmp " #other                      \
      "@PLT\n"                             \
      ".size " #name ", .-" #name          \
      "\n"                                 \
      ".popsection\n");

/// Returns what the function returns.
extern "C" __attribute__((visibility("hidden"), used)) int sim_not_supported_call(const char* name);
