#pragma once
// What the stresses have in common: command line, checks and random choices.
#include <cstdlib>
#include <cstring>

#include "responder.h"

namespace twin {

constexpr u64 kSecond = 1000000000ull;
// Nothing takes this long unless something hangs.
constexpr u64 kForever = 30 * kSecond;

inline bool check(const char* what, u64 is, u64 should) {
  if (is != should) {
    violation(what, is, should);
  }
  return is == should;
}

template <class T, size_t N>
T pick(std::mt19937_64& random, const T (&values)[N]) {
  return values[random() % N];
}

// PROGRAM seconds|COUNTED NUMBER [SEED]
struct Arguments {
  bool timed;
  u64 number;
  u64 seed;
};

// Says the seed, or how the program is called and false.
inline bool parse(int argc, char** argv, const char* counted, Arguments& a) {
  if (argc < 3 || (std::strcmp(argv[1], "seconds") != 0 && std::strcmp(argv[1], counted) != 0)) {
    std::fprintf(stderr, "usage: %s seconds|%s NUMBER [SEED]\n", argv[0], counted);
    return false;
  }
  a = {std::strcmp(argv[1], "seconds") == 0, std::strtoull(argv[2], nullptr, 10),
       argc > 3 ? std::strtoull(argv[3], nullptr, 10) : nanos()};
  std::printf("seed %llu\n", a.seed);
  std::fflush(stdout);
  return true;
}

}  // namespace twin
