// What the files of the library share. Nothing of it is exported.
#ifndef GPUNVME_CUFILE_PARTS_H
#define GPUNVME_CUFILE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cufile_abi.h"

#define CUFILE_VERSION 1150 // of cuFile, whose ABI this is

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define KIB ((size_t)1 << 10)

static inline CUfileError_t status_of(CUfileOpError code) {
  return (CUfileError_t){.err = code, .cu_err = 0};
}

static inline CUfileError_t cuda_failed(CUresult code) {
  return (CUfileError_t){.err = CU_FILE_CUDA_DRIVER_ERROR, .cu_err = code};
}

// What a transfer returns that cuFile refuses.
static inline ssize_t refused(CUfileOpError code) {
  return -(ssize_t)code;
}

// ---- log.c

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_NOTICE, LOG_WARN, LOG_ERROR };

// The level of that name, in any case; -1 if there is none.
int log_level_of(const char *name);

// Where lines go from now on: to the file, else to cufile.log in the folder, else nowhere. "" is none.
void log_open(const char *file, const char *folder, const char *level);

void log_line(enum log_level level, const char *part, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define LOG(level, ...) log_line(level, CUFILE_PART, __LINE__, __VA_ARGS__)

// ---- json.c

// Told of each value of a JSON text: the names that lead to it with points between them, and the value as text. Values of arrays are
// told one by one, with their number.
typedef void json_visitor(void *data, const char *name, int number, const char *value);

// Visits all values; // and /* */ are comments. NULL, or what is wrong and where; the text of it is static to the thread.
const char *json_visit(const char *text, json_visitor *visitor, void *data);

// ---- settings.c

typedef struct settings {
  size_t sizes[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS + 1];
  bool bools[CUFILE_PARAM_STREAM_MEMOPS_BYPASS + 1];
  char strings[CUFILE_PARAM_LOG_DIR + 1][4096];
  size_t slab_sizes[16], slab_counts[16];
  int slabs;
} settings;

// Those in force: of the driver while it is open, else those that are staged.
void settings_now(settings *to);

// One of those in force, without the cost of a copy; the driver is open.
bool setting_bool(CUFileBoolConfigParameter_t which);
size_t setting_size(CUFileSizeTConfigParameter_t which);

// The driver opens with those that are staged, of the file, the environment and the setters, and forgets what setters staged. Says in
// the log what it does not know or does not take.
void settings_open(settings *to);

// It closes.
void settings_release(void);

// A child of fork may ask for settings: nobody else is at them while the process is copied.
void settings_fork(bool begins);

// Changes a size while the driver is open, if it is in range.
bool setting_change(CUFileSizeTConfigParameter_t which, size_t value);
void setting_poll(bool poll);

// ---- library.c

// Opens the driver if nobody has yet. Every function that needs it begins with this.
CUfileOpError library_begin(void);

// Whether it is open, and this process is no fork of one that opened it.
bool library_is_open(void);

// Whether this is a fork of a process that had opened the driver.
bool library_forked(void);

// The size of BAR1, which is a GPU's second region of memory, by the kernel's list of the regions of a PCI device; 0 if it is not told.
size_t bar1_bytes(FILE *resource);

// ---- cuda.c

typedef unsigned long long device_address;
typedef struct CUctx_st *cuda_context;

// What is known of an address.
typedef struct memory {
  bool device;
  int gpu;              // its number, of device memory
  cuda_context context; // to copy in, of device memory
  bool registered;      // begin and bytes are of the registered buffer, else of the allocation
  device_address begin;
  size_t bytes; // 0: unknown
} memory;

// Loads CUDA's driver library if there is one; never starts it.
void cuda_load(void);
bool cuda_is_there(void);

// What an address is. Memory that CUDA does not know is the host's.
CUresult cuda_memory(const void *address, memory *m);

// Whether kernels of the current context may use an address.
bool cuda_reaches(const void *address);

// How many GPUs there are, and what they are called; starts CUDA if the program has not.
int cuda_gpus(void);
void cuda_uuid(int gpu, char uuid[CUFILE_GPU_UUID_LEN]);
bool cuda_bus_id(int gpu, char *id, int length);

// What a thread of the program had before: its context, and what calls a capture of streams keeps it from.
typedef struct caller {
  cuda_context context;
  int capture_mode;
} caller;

// Makes a context current, and says what was. Between the two nothing breaks the captures of the program's streams, none of which is ours.
CUresult cuda_enter(cuda_context context, caller *before);
void cuda_leave(caller before);

CUresult cuda_pinned(void **address, size_t bytes);
void cuda_unpin(void *address);

// Pins pages of a file that are mapped read-only, for all contexts, and says where GPUs find them.
bool cuda_pins_files(void);
CUresult cuda_pin_file(void *address, size_t bytes, device_address *device);
void cuda_unpin_file(void *address);
CUresult cuda_stream(CUstream *stream);
void cuda_stream_end(CUstream stream);
CUresult cuda_to_device(device_address to, const void *from, size_t bytes, CUstream stream);
CUresult cuda_to_host(void *to, device_address from, size_t bytes, CUstream stream);
CUresult cuda_wait(CUstream stream);

// For streams of the program: the context of a stream, whether it is captured, a function in its order, and a launch of the kernel
// that copies what descriptors in pinned memory say, none of which has more bytes than most.
typedef struct copy {
  uint64_t to, from, bytes;
} copy;

CUresult cuda_stream_context(CUstream stream, cuda_context *context);
bool cuda_is_captured(CUstream stream);
CUresult cuda_call(CUstream stream, void (*function)(void *), void *data);
CUresult cuda_prepare_copy(cuda_context context, bool again); // also if it failed before: there may be more memory now
CUresult cuda_launch_copies(cuda_context context, const copy *descriptors, unsigned count, size_t most, CUstream stream);

// All kernels are unloaded. A context that the program makes after the driver closed may have the address of one that was.
void cuda_drop_kernels(void);
const char *cuda_error(CUresult code);

// ---- lanes.c: pinned memory with a stream of its own

#define LANE_BYTES ((size_t)1 << 20)
enum { MOST_COPIES = 64 };

typedef struct lane {
  struct lane *next;
  cuda_context context;
  CUstream stream;
  char *pinned; // LANE_BYTES
  copy *copies; // MOST_COPIES behind them
} lane;

// A lane of a context, which is current when this returns; *before was.
CUresult lane_take(cuda_context context, lane **taken, caller *before);
void lane_give(lane *l, caller before);

// All that are free are freed.
void lanes_drop(void);

// ---- workers.c: threads for what the caller does not wait for, or shares

typedef struct task {
  struct task *next;
  void (*run)(struct task *);
} task;

// Has a worker run it, in the order of these calls. False if there is no thread, or the driver is closed.
bool workers_post(task *t);

// How many there may be.
int workers_limit(void);

// Looks for LOOK_NANOSECONDS at most whether a number is another one by now: that saves the time that waking a thread takes.
enum { LOOK_NANOSECONDS = 30000 };
void workers_look(atomic_uint *number, unsigned is);

// Waits until nothing is posted and nothing runs, and ends the threads.
void workers_end(void);

// ---- handles.c

struct place;
typedef struct windows windows;

typedef struct handle {
  uint64_t magic;
  int fd;       // of the program
  int buffered; // the same file through the page cache, if fd is not; else fd; -1 if there is none
  bool direct;  // O_DIRECT
  bool reads, writes;
  struct place *place; // what takes the place of the file, or NULL
  bool windowed;       // it may have windows
  pthread_mutex_t lock;
  windows *windows; // guarded by lock
  atomic_int users; // transfers, and 1 for the program
} handle;

// The handle, if it is one, which stays until handle_leave; else NULL.
handle *handle_use(CUfileHandle_t fh);
void handle_leave(handle *h);
void handle_hold(handle *h);
void handles_drop(void);

// ---- windows.c: parts of files that are in the page cache, pinned there for the GPU

// Where bytes of a file are, for CUDA's copies and for kernels; bytes is 0 if no window has the first of them.
typedef struct view {
  const char *host;
  device_address device;
  size_t bytes;
} view;

// Reads how much may be pinned, when the driver opens.
void windows_open(void);

// How much memory a process may have that is in these control groups (/proc/self/cgroup), whose files are below root; at most most.
size_t memory_of_groups(FILE *list, const char *root, size_t most);

// Whether a file may have windows at all; the driver is open, or opens.
bool windows_may_be(int fd, bool reads, bool direct);

// Those of the file as it is now, which stay until windows_leave; NULL if there are none.
windows *windows_take(handle *h);

// NULL is nothing. Calls nothing of CUDA: a worker does, or windows_close.
void windows_leave(windows *w);

// The driver closes: what no worker took, since they end, is let go.
void windows_close(void);

// Where the bytes from an offset are, up to size of them, fewer at the end of a window and of the file.
view windows_view(const windows *w, off_t offset, size_t size);

// Whether the file ends there.
bool windows_end(const windows *w, off_t offset);

// Whether they have the whole file, or all these bytes, no more than two have.
bool windows_have(const windows *w, off_t offset, size_t size);

// So many bytes from there on were read into a GPU's memory without windows. A worker pins what is read again and again.
void windows_count(windows *w, off_t offset, size_t bytes, cuda_context context);

// ---- places.c: files that are storage of ours

// Looks whether a file is one, by the map and by its content. *found stays NULL if it is none.
CUfileOpError place_open(int fd, bool writes, struct place **found);
void place_close(struct place *p);

// Bytes, or as a transfer of cuFile returns.
ssize_t place_transfer(const struct place *p, bool write, uint64_t offset, uint64_t address, size_t bytes);

// Whether the environment has a map.
bool places_are_mapped(void);

// ---- buffers.c

// Finds the registered buffer at this base. False if there is none.
bool buffer_find(const void *base, memory *m);
void buffers_drop(void);

// ---- io.c

typedef struct transfer {
  handle *h;
  bool write;
  void *base;
  size_t size;
  off_t file_offset, base_offset;
} transfer;

// Does it, and counts it. Bytes, -1 with errno, or minus a code.
ssize_t transfer_run(const transfer *t);

// What memory the base of a transfer is: 0, or minus a code.
ssize_t transfer_memory(const void *base, memory *m);

// What is wrong with it before anything is moved: 0, -1 with errno, or minus a code. Calls nothing of CUDA.
ssize_t transfer_check(const transfer *t, const memory *m);

// What it is counted as; started is of stats_clock.
void transfer_count(const transfer *t, const memory *m, ssize_t result, uint64_t started);

// Moves many, MOST_COPIES at most, by one thread, those that are in order, and counts nothing. Results are bytes, minus errno, or minus a
// code.
void transfers_run(const transfer *all, const memory *of, ssize_t *results, size_t count);

// Whether that has it copied together with others.
bool transfer_gathers(const transfer *t, const memory *m);

// Moves host memory by as many threads as are worth it.
ssize_t transfer_shared_host(handle *h, bool write, char *address, size_t size, off_t offset);

// ---- stats.c

enum counter {
  COUNT_READ,
  COUNT_WRITE,
  COUNT_HANDLE_REGISTER,
  COUNT_HANDLE_DEREGISTER,
  COUNT_BUFFER_REGISTER,
  COUNT_BUFFER_DEREGISTER,
  COUNT_BATCH_SUBMIT,
  COUNT_BATCH_COMPLETE,
  COUNT_BATCH_SETUP,
  COUNT_BATCH_CANCEL,
  COUNT_BATCH_DESTROY,
  COUNT_BATCH_ENQUEUED, // of storage of ours, as the next
  COUNT_BATCH_PROCESSED,
  COUNT_BATCH_POSIX_ENQUEUED, // of other files, as the next
  COUNT_BATCH_POSIX_PROCESSED,
  COUNTERS
};

void stats_begin(int level);
void stats_end(void);
bool stats_on(void);
uint64_t stats_clock(void); // microseconds; 0 while nothing is counted
void stats_count(enum counter which, bool good);

// A transfer that ended; started is of stats_clock. gpu is -1 for host memory; ours: it went through storage of ours.
void stats_transfer(bool write, ssize_t result, uint64_t started, int gpu, bool unaligned, bool ours);
void stats_batch(bool write, size_t bytes, uint64_t microseconds);
void stats_buffer(int gpu, size_t bytes, bool registered, bool good);

// ---- stream.c, batch.c

void streams_drop(void);

#endif
