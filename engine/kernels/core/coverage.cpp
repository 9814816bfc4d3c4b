// For fuzzing only: which code an input has reached. The compiler calls `__sanitizer_cov_trace_pc` at the
// start of every basic block; tests/fuzz/fuzz_coverage.py calls the other functions through ctypes.

#include <cstddef>
#include <cstdint>

#define LANCE_UNTRACED __attribute__((no_sanitize_coverage))
#define LANCE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kBlocks = size_t{1} << 17;

uint8_t hits[kBlocks];  // by the input that runs
uint8_t seen[kBlocks];  // by all inputs: a bit for each order of magnitude of `hits`
bool tracing = false;

LANCE_UNTRACED uint8_t magnitude(uint8_t count) {
  return count < 4 ? static_cast<uint8_t>(1 << (count - 1))
                   : static_cast<uint8_t>(count < 8     ? 8
                                          : count < 32  ? 16
                                          : count < 128 ? 32
                                                        : 64);
}

}  // namespace

LANCE_EXPORTED LANCE_UNTRACED void __sanitizer_cov_trace_pc() {
  if (!tracing) return;
  auto address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t& count = hits[(address ^ address >> 17) % kBlocks];
  if (count < 255) ++count;
}

// Starts over: as if no input had run.
LANCE_EXPORTED LANCE_UNTRACED void lance_coverage_reset() {
  for (size_t i = 0; i < kBlocks; ++i) seen[i] = 0;
}

LANCE_EXPORTED LANCE_UNTRACED void lance_coverage_start() {
  for (size_t i = 0; i < kBlocks; ++i) hits[i] = 0;
  tracing = true;
}

// How many blocks the input reached for the first time, or far more often than any input before.
LANCE_EXPORTED LANCE_UNTRACED size_t lance_coverage_stop() {
  tracing = false;
  size_t fresh = 0;
  for (size_t i = 0; i < kBlocks; ++i) {
    if (!hits[i]) continue;
    uint8_t found = magnitude(hits[i]);
    fresh += !(seen[i] & found);
    seen[i] |= found;
  }
  return fresh;
}

LANCE_EXPORTED LANCE_UNTRACED size_t lance_coverage_blocks() {
  size_t reached = 0;
  for (size_t i = 0; i < kBlocks; ++i) reached += seen[i] != 0;
  return reached;
}
