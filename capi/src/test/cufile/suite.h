// Checks of the behaviour and the errors of cuFile's C interface, against any libcufile.so.0: what the topics' files use.
//
// A group of checks runs in a process of its own, which loads the library. A check has a name that stays, GROUP.CHECK, with
// @host or @device behind it where it uses memory. Two kinds: judged (documented behaviour; it passes or fails) and observed
// (documentation leaves it open; recorded, so that two libraries can be compared).
#ifndef CUFILE_SUITE_H
#define CUFILE_SUITE_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef CUFILE_OF_NVIDIA
#include <cufile.h>
#else
#include "cufile_abi.h"
#endif

// ---- The library under test: a table, so that a symbol that is missing is a failed check.

#define CUFILE_FUNCTIONS(X)                                                                                                      \
  X(HandleRegister)                                                                                                              \
  X(HandleDeregister)                                                                                                            \
  X(BufRegister)                                                                                                                 \
  X(BufDeregister)                                                                                                               \
  X(Read)                                                                                                                        \
  X(Write)                                                                                                                       \
  X(DriverOpen)                                                                                                                  \
  X(DriverClose)                                                                                                                 \
  X(UseCount)                                                                                                                    \
  X(DriverGetProperties)                                                                                                         \
  X(DriverSetPollMode)                                                                                                           \
  X(DriverSetMaxDirectIOSize)                                                                                                    \
  X(DriverSetMaxCacheSize)                                                                                                       \
  X(DriverSetMaxPinnedMemSize)                                                                                                   \
  X(BatchIOSetUp)                                                                                                                \
  X(BatchIOSubmit)                                                                                                               \
  X(BatchIOGetStatus)                                                                                                            \
  X(BatchIOCancel)                                                                                                               \
  X(BatchIODestroy)                                                                                                              \
  X(ReadAsync)                                                                                                                   \
  X(WriteAsync)                                                                                                                  \
  X(StreamRegister)                                                                                                              \
  X(StreamDeregister)                                                                                                            \
  X(GetVersion)                                                                                                                  \
  X(GetParameterSizeT)                                                                                                           \
  X(GetParameterBool)                                                                                                            \
  X(GetParameterString)                                                                                                          \
  X(GetParameterMinMaxValue)                                                                                                     \
  X(SetParameterSizeT)                                                                                                           \
  X(SetParameterBool)                                                                                                            \
  X(SetParameterString)                                                                                                          \
  X(SetStatsLevel)                                                                                                               \
  X(GetStatsLevel)                                                                                                               \
  X(StatsStart)                                                                                                                  \
  X(StatsStop)                                                                                                                   \
  X(StatsReset)                                                                                                                  \
  X(GetStatsL1)                                                                                                                  \
  X(GetStatsL2)                                                                                                                  \
  X(GetStatsL3)                                                                                                                  \
  X(GetBARSizeInKB)                                                                                                              \
  X(SetParameterPosixPoolSlabArray)                                                                                              \
  X(GetParameterPosixPoolSlabArray)

struct cufile_table {
#define X(name) __typeof__(cuFile##name) *name;
  CUFILE_FUNCTIONS(X)
#undef X
};

extern struct cufile_table cufile;
extern const char *cufile_library; // what dlopen is given

// The name that the library exports for a function of the table.
const char *exported_name(const char *name);

// Loads the library and fills the table; false if it cannot be loaded.
bool load_cufile(void);

// ---- Groups

enum {
  USES_MEMORY = 1, // runs once for each kind of memory
  UNLOADED = 2,    // loads the library itself, or not at all
  MAY_CRASH = 4,   // documentation leaves it open: how it ends is observed, not judged
  USES_CUDA = 8,   // skipped without a libcuda
};

struct group {
  const char *name;
  const char *about;
  void (*run)(void);
  unsigned flags;
  void (*before)(void); // runs in the process before the library is loaded: environment and configuration
};

// Each topic has an array of groups, which ends with one without a name.
extern const struct group abi_groups[], driver_groups[], parameter_groups[], config_groups[], handle_groups[], buffer_groups[],
    io_groups[], stream_groups[], batch_groups[], stats_groups[], process_groups[];

// ---- Checks. The name is the part behind the group's; it may be a format for names of a table's rows.

// Text that is valid until 128 calls later.
const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

void is_true(const char *id, bool ok, const char *expected, const char *observed);
void is_number(const char *id, long long observed, long long expected);
void is_error(const char *id, CUfileError_t observed, CUfileOpError expected);
void is_one_of(const char *id, CUfileError_t observed, int count, const CUfileOpError *expected);
void observe(const char *id, const char *observed);
void skip(const char *id, const char *why);

#define SUCCEEDS(id, call) is_error(id, call, CU_FILE_SUCCESS)
#define ONE_OF(id, call, ...)                                                                                                    \
  is_one_of(id, call, (int)(sizeof((CUfileOpError[]){__VA_ARGS__}) / sizeof(CUfileOpError)), (CUfileOpError[]){__VA_ARGS__})

const char *code_name(int code); // of a CUfileOpError
const char *error_text(CUfileError_t error);

// What a read or a write gave: bytes, or a negative number and errno.
struct transferred {
  ssize_t value;
  int error;
};
#define TRANSFER(call)                                                                                                           \
  ({                                                                                                                             \
    errno = 0;                                                                                                                   \
    ssize_t value_ = (call);                                                                                                     \
    (struct transferred){value_, value_ < 0 ? errno : 0};                                                                        \
  })
const char *transferred_text(struct transferred what);
void is_transferred(const char *id, struct transferred observed, ssize_t expected);
void is_refused(const char *id, struct transferred observed);           // any negative number
void is_errno(const char *id, struct transferred observed, int error); // -1, and this errno
void observe_transferred(const char *id, struct transferred observed);

// Ends the group here; what else it has to say is not known. Told as a skipped check.
void give_up(const char *why) __attribute__((noreturn));

// ---- Files. All of them are in the group's own folder, which is the working directory.

#define KIB 1024L
#define MIB (1024L * 1024)

uint8_t pattern_at(uint32_t seed, size_t position); // the byte of a file at a position
void pattern(void *to, uint32_t seed, size_t position, size_t size);
int new_file(const char *name, int flags, uint32_t seed, size_t size); // opened with flags; -1 if this cannot be here
bool file_has(const char *name, uint32_t seed, size_t position, size_t size);
CUfileError_t register_fd(CUfileHandle_t *handle, int fd);
CUfileHandle_t handle_of(int fd); // or gives the group up
void open_driver(void);           // or gives it up with a failed check

// ---- Memory of the kind that the group runs for

enum memory { HOST, DEVICE };
extern enum memory memory;

void *allocate(size_t size); // a multiple of 4 KiB, zeros
void release(void *memory);
void put(void *to, const void *from, size_t size);
void get(void *to, const void *from, size_t size);
void fill(void *to, int byte, size_t size);
bool has_pattern(const void *memory, uint32_t seed, size_t position, size_t size);
bool has_byte(const void *memory, int byte, size_t size);
void put_pattern(void *to, uint32_t seed, size_t position, size_t size);

// What differs from the pattern first, as text for a check.
void is_pattern(const char *id, const void *memory, uint32_t seed, size_t position, size_t size);
void is_byte(const char *id, const void *memory, int byte, size_t size);

// ---- CUDA's driver, by dlopen

typedef int cuda_result;
typedef unsigned long long cuda_address;
struct cuda_table {
  cuda_result (*Init)(unsigned);
  cuda_result (*DeviceGet)(int *, int);
  cuda_result (*DeviceGetCount)(int *);
  cuda_result (*DevicePrimaryCtxRetain)(void **, int);
  cuda_result (*CtxSetCurrent)(void *);
  cuda_result (*MemAlloc_v2)(cuda_address *, size_t);
  cuda_result (*MemFree_v2)(cuda_address);
  cuda_result (*MemcpyHtoDAsync_v2)(cuda_address, const void *, size_t, void *);
  cuda_result (*MemcpyDtoHAsync_v2)(void *, cuda_address, size_t, void *);
  cuda_result (*MemHostAlloc)(void **, size_t, unsigned);
  cuda_result (*MemFreeHost)(void *);
  cuda_result (*MemAllocManaged)(cuda_address *, size_t, unsigned);
  cuda_result (*StreamCreateWithPriority)(void **, unsigned, int);
  cuda_result (*StreamWaitValue32_v2)(void *, cuda_address, unsigned, unsigned);
  cuda_result (*StreamSynchronize)(void *);
  cuda_result (*StreamDestroy_v2)(void *);
  cuda_result (*LaunchHostFunc)(void *, void (*)(void *), void *);
};
extern struct cuda_table cuda; // what is missing is null
extern const char *cuda_missing; // why there is no CUDA; null if there is
void open_cuda(void);           // with the device's primary context made current, also in a thread of its own

// ---- Configuration

// Writes cufile.json with the text as more of its properties ("key": value, ...), and has the library read it.
void configure(const char *properties, const char *execution_or_other);
void configure_text(const char *whole);
void cufile_threads(void); // for calls on streams

double seconds_now(void);

#endif
