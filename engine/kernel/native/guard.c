// Where a failed safety check of kernel.zig returns to, which Zig cannot say itself; and whether the processor can run it.
#include <setjmp.h>
#include <stdlib.h>

static _Thread_local jmp_buf *way_out;

// Runs work, and returns whether it came to its end.
int assay_guarded(void (*run)(void *), void *work) {
  jmp_buf here;
  jmp_buf *const outer = way_out;
  if (setjmp(here) != 0) {
    way_out = outer;
    return 0;
  }
  way_out = &here;
  run(work);
  way_out = outer;
  return 1;
}

_Noreturn void assay_escape(void) {
  if (way_out == NULL) abort(); // the entries do nothing outside of assay_guarded that can fail a check
  longjmp(*way_out, 1);
}

// This file is compiled for any processor, and kernel.zig for x86-64-v3: asked before anything else is called.
#if defined(__x86_64__)
#include <cpuid.h>
int assay_kernel_supported(void) {
  const unsigned basic = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29; // FMA, MOVBE, OSXSAVE, AVX, F16C
  const unsigned extended = 1u << 3 | 1u << 5 | 1u << 8;                        // BMI1, AVX2, BMI2
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic) return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0)); // whether the system saves the wide registers
  if ((low & 6) != 6) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & extended) != extended) return 0;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & 1u << 5) != 0; // LZCNT
}
#else
int assay_kernel_supported(void) { return 1; }
#endif
