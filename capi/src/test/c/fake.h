// A double of the virtual machine: a table of functions that write down what they were called with.
#ifndef GPUNVME_FAKE_H
#define GPUNVME_FAKE_H

#include <stdatomic.h>
#include <stdint.h>

#define FAKE_ARGUMENTS 8

typedef struct fake_call {
  const char *function; // of the table
  uint64_t arguments[FAKE_ARGUMENTS]; // in order without the failure; what pointers to single numbers point to
  const void *pointers[3];            // other pointers, in order
} fake_call;

// The last call of this thread.
extern _Thread_local fake_call fake_last;

// What table functions return to this thread; negative ones also fill the failure with "fake failure N" and errno 5.
extern _Thread_local int fake_answer;

// What the next starts do.
enum fake_start { FAKE_WORKS, FAKE_FAILS, FAKE_LEAVES_IT_EMPTY, FAKE_ABORTS };
extern enum fake_start fake_next_start;

extern int fake_starts;

// How often a function of the table was to be made: gpu_synchronize, the only one that is not there from the start.
extern int fake_makes;
extern int fake_make_fails;

// How often the process was told to end, and whether that takes for ever.
extern atomic_int fake_ends;
extern int fake_end_hangs;

// Whether starts find a virtual machine of somebody else.
extern int fake_found;

// What the thread that started saw.
extern uint64_t fake_stack_bytes;
extern int fake_interrupt_blocked, fake_crash_blocked;
extern const char *fake_java_home;
extern uint64_t fake_options;

#endif
