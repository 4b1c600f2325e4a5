// Transfers in the order of a stream.
//
// The stream calls functions of ours (which may call nothing of CUDA) and runs a kernel that copies between pinned memory and the GPU.
// For a read: a function reads the arguments and a piece of the file, and fills the kernel's descriptor; the kernel copies; and so on.
// Meanwhile a worker reads the next piece. What windows have when the call is made is copied from there, in longer pieces. So nothing of
// a transfer depends on calls of CUDA that another thread may keep waiting.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#define CUFILE_PART "stream"

#define PIECE ((size_t)4 << 20)
#define COPIED_PIECE (2 * PIECE) // of what windows have: as much as pinned memory takes, if they do not have it any more
#define SLACK ((size_t)64) // so that both sides of a copy are off alignment by the same

typedef struct stream_state {
  struct stream_state *next;
  CUstream stream;
  cuda_context context;
  uint64_t thread; // whose stream it is, of CUDA's per-thread default stream; else 0
  bool registered;
  unsigned flags;
  atomic_int running; // transfers that the stream has not come to the end of
  char *pinned;       // two pieces with slack, and two descriptors for each
} stream_state;

// What a worker reads ahead, unless the stream comes first: then the step reads it, so that no step waits for workers that have other
// things to do.
typedef struct ahead {
  task t;
  struct handle *h;
  size_t bytes;
  off_t offset;
  char *to;
  atomic_bool claimed;
  atomic_int users; // the worker and the operation
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool over; // guarded by lock
  ssize_t result;
  int error;
} ahead;

typedef struct operation {
  stream_state *s;
  transfer t;
  memory m;
  unsigned fixed;
  const size_t *size;
  const off_t *file_offset, *base_offset;
  ssize_t *result;
  size_t most;      // the size that was asked for when it was put in the stream
  atomic_int users; // steps that are still to come, and who submits
  atomic_bool broken;
  bool ended;  // no more bytes come
  size_t done; // bytes
  uint64_t started;
  ahead *next; // or NULL
  windows *w;  // of the file, of a read into memory of the GPU
  bool copies; // from windows, if they have the bytes still when the stream comes to it
} operation;

typedef struct step {
  operation *o;
  size_t index;
} step;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream_state *all; // guarded by lock

static char *piece_of(const stream_state *s, size_t index) {
  return s->pinned + index % 2 * (PIECE + SLACK);
}

// The first of two, of which only copies from windows use the second.
static copy *descriptor_of(const stream_state *s, size_t index) {
  return (copy *)(s->pinned + 2 * (PIECE + SLACK)) + index % 2 * 2;
}

// ---- states

// A number of this thread that no other one ever had, if the stream is not the same for all threads.
static uint64_t thread_of(CUstream stream) {
  enum { PER_THREAD = 2 };
  static atomic_uint_fast64_t threads;
  static _Thread_local uint64_t mine;
  if ((uintptr_t)stream != PER_THREAD) {
    return 0;
  }
  mine = mine != 0 ? mine : atomic_fetch_add(&threads, 1) + 1;
  return mine;
}

// With the lock.
static stream_state **find(CUstream stream, cuda_context context) {
  const uint64_t thread = thread_of(stream);
  stream_state **at = &all;
  while (*at != NULL && ((*at)->stream != stream || (*at)->context != context || (*at)->thread != thread)) {
    at = &(*at)->next;
  }
  return at;
}

// With the lock.
static stream_state *add(CUstream stream, cuda_context context) {
  stream_state *s = calloc(1, sizeof *s);
  if (s != NULL) {
    s->stream = stream;
    s->context = context;
    s->thread = thread_of(stream);
    s->next = all;
    all = s;
  }
  return s;
}

static void drop(stream_state *s) {
  caller before;
  if (s->pinned != NULL && cuda_enter(s->context, &before) == 0) {
    cuda_unpin(s->pinned);
    cuda_leave(before);
  }
  free(s);
}

void streams_drop(void) {
  pthread_mutex_lock(&lock);
  stream_state *s = all;
  all = NULL;
  pthread_mutex_unlock(&lock);
  bool idle = true;
  while (s != NULL) {
    stream_state *next = s->next;
    if (atomic_load(&s->running) > 0) {
      LOG(LOG_WARN, "a stream has transfers to do still; its memory is kept");
      idle = false;
    } else {
      drop(s);
    }
    s = next;
  }
  if (idle) {
    cuda_drop_kernels();
  }
}

// With the lock. Pinned memory and the kernel, whose first use may wait for work of the GPU.
static CUresult prepare(stream_state *s) {
  CUresult code = s->pinned != NULL ? 0 : cuda_pinned((void **)&s->pinned, 2 * (PIECE + SLACK) + 4 * sizeof(copy));
  return code != 0 ? code : cuda_prepare_copy(s->context, true);
}

// The state of a stream, prepared if that is needed.
static CUfileError_t state_for(CUstream stream, cuda_context context, bool prepared, bool registers, unsigned flags, stream_state **state) {
  CUfileError_t status = status_of(CU_FILE_SUCCESS);
  pthread_mutex_lock(&lock);
  stream_state *s = *find(stream, context);
  if (!library_is_open()) { // what comes behind streams_drop would stay
    status = status_of(CU_FILE_DRIVER_CLOSING);
  } else if (s != NULL && registers && s->registered) {
    status = status_of(CU_FILE_INVALID_VALUE);
  } else if (s == NULL && (s = add(stream, context)) == NULL) {
    status = status_of(CU_FILE_NOMEM_ERROR);
  } else {
    CUresult code = prepared ? prepare(s) : 0;
    status = code == 0 ? status : cuda_failed(code);
  }
  if (status.err == CU_FILE_SUCCESS && registers) {
    s->registered = true;
    s->flags = flags;
  } else if (status.err == CU_FILE_SUCCESS) {
    atomic_fetch_add(&s->running, 1);
    *state = s;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags) {
  cuda_context context;
  caller before;
  const CUfileOpError opened = library_begin();
  if (opened != CU_FILE_SUCCESS) {
    return status_of(opened);
  }
  CUresult code = cuda_stream_context(stream, &context);
  if (code != 0) {
    LOG(LOG_ERROR, "the stream has no context: %s", cuda_error(code));
    return status_of(cuda_is_there() ? CU_FILE_INVALID_VALUE : CU_FILE_ASYNC_NOT_SUPPORTED);
  }
  code = cuda_enter(context, &before);
  if (code != 0) {
    return cuda_failed(code);
  }
  CUfileError_t status = state_for(stream, context, true, true, flags, NULL);
  cuda_leave(before);
  return status;
}

CUfileError_t cuFileStreamDeregister(CUstream stream) {
  cuda_context context;
  caller before;
  if (!library_is_open()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  if (cuda_stream_context(stream, &context) != 0) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  pthread_mutex_lock(&lock);
  stream_state **at = find(stream, context), *s = *at;
  if (s != NULL && s->registered) {
    *at = s->next;
  } else {
    s = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (s == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  // A stream that failed does not come to its steps; what they use is kept then.
  if (cuda_enter(context, &before) == 0) {
    CUresult code = cuda_wait(stream);
    cuda_leave(before);
    if (code != 0 || atomic_load(&s->running) > 0) {
      LOG(LOG_WARN, "the stream did not do all its transfers: %s", cuda_error(code));
      return status_of(CU_FILE_SUCCESS);
    }
  }
  drop(s);
  return status_of(CU_FILE_SUCCESS);
}

// ---- operations

static void ahead_leave(ahead *a) {
  if (atomic_fetch_sub(&a->users, 1) == 1) {
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    handle_leave(a->h);
    free(a);
  }
}

// By whoever claims it first; returns when it is over in any case.
static void ahead_finish(ahead *a, bool waits) {
  if (!atomic_exchange(&a->claimed, true)) {
    ssize_t result = transfer_shared_host(a->h, false, a->to, a->bytes, a->offset);
    int error = errno;
    pthread_mutex_lock(&a->lock);
    a->result = result;
    a->error = error;
    a->over = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
  } else if (waits) {
    pthread_mutex_lock(&a->lock);
    while (!a->over) {
      pthread_cond_wait(&a->changed, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
  }
}

static void run_ahead(task *t) {
  ahead *a = (ahead *)t;
  ahead_finish(a, false);
  ahead_leave(a);
}

static void operation_leave(operation *o) {
  if (atomic_fetch_sub(&o->users, 1) == 1) {
    if (o->next != NULL) { // of a transfer that the stream did not take as a whole
      ahead_finish(o->next, true);
      ahead_leave(o->next);
    }
    if (o->w != NULL && o->copies) { // kernels that the stream did take may copy from them still
      LOG(LOG_WARN, "the pinned part of a file is kept: its stream has failed");
    } else {
      windows_leave(o->w);
    }
    handle_leave(o->t.h);
    atomic_fetch_sub(&o->s->running, 1);
    free(o);
  }
}

static size_t piece_bytes(const operation *o) {
  return o->copies ? COPIED_PIECE : PIECE;
}

// The bytes of a piece of the transfer, once its size is known.
static size_t bytes_of(const operation *o, size_t index) {
  const size_t piece = piece_bytes(o), begin = index * piece;
  return begin >= o->t.size ? 0 : o->t.size - begin < piece ? o->t.size - begin : piece;
}

static uint64_t device_place(const operation *o, size_t index) {
  return (uint64_t)(uintptr_t)o->t.base + (uint64_t)o->t.base_offset + index * piece_bytes(o);
}

static char *host_place(const operation *o, size_t index) {
  return piece_of(o->s, index) + device_place(o, index) % 16;
}

// Has a worker read a piece, if there is one.
static void post_ahead(operation *o, size_t index) {
  const size_t bytes = o->ended ? 0 : bytes_of(o, index);
  ahead *a = bytes == 0 ? NULL : malloc(sizeof *a);
  if (a == NULL) {
    return;
  }
  *a = (ahead){.t.run = run_ahead,
      .h = o->t.h,
      .bytes = bytes,
      .offset = o->t.file_offset + (off_t)(index * PIECE),
      .to = host_place(o, index),
      .users = 2};
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->changed, NULL);
  handle_hold(a->h);
  if (!workers_post(&a->t)) {
    ahead_leave(a);
  }
  o->next = a;
}

// Bytes of the piece that are in pinned memory, as a transfer returns.
static ssize_t read_piece(operation *o, size_t index) {
  ahead *a = o->next;
  if (a == NULL) {
    return transfer_shared_host(o->t.h, false, host_place(o, index), bytes_of(o, index), o->t.file_offset + (off_t)(index * PIECE));
  }
  ahead_finish(a, true);
  const ssize_t result = a->result;
  const int error = a->error;
  o->next = NULL;
  ahead_leave(a);
  errno = error;
  return result;
}

// What a piece gave; a failure counts only if nothing came before it.
static void piece_done(operation *o, size_t bytes, ssize_t n) {
  if (n < 0 && o->done == 0) {
    *o->result = n == -1 ? -errno : n;
  }
  if (n < (ssize_t)bytes) {
    o->ended = true;
  }
  if (n > 0) {
    o->done += (size_t)n;
  }
  if (o->done > 0) {
    *o->result = (ssize_t)o->done;
  }
}

// The stream has come to the transfer: now its arguments count.
static void begin(operation *o) {
  if (!(o->fixed & CU_FILE_STREAM_FIXED_FILE_SIZE)) {
    o->t.size = *o->size;
  }
  if (!(o->fixed & CU_FILE_STREAM_FIXED_FILE_OFFSET)) {
    o->t.file_offset = *o->file_offset;
  }
  if (!(o->fixed & CU_FILE_STREAM_FIXED_BUF_OFFSET)) {
    o->t.base_offset = *o->base_offset;
  }
  o->started = stats_clock();
  *o->result = 0;
  ssize_t wrong = o->t.size > o->most ? refused(CU_FILE_INVALID_VALUE) : transfer_check(&o->t, &o->m);
  if (wrong != 0) {
    *o->result = wrong == -1 ? -errno : wrong;
    o->ended = true;
    o->t.size = 0;
  }
}

// The bytes that the steps in the stream are enough for: a transfer that is larger than its memory is refused when it begins.
static size_t most_bytes(const operation *o) {
  return o->m.bytes > 0 && o->m.bytes < o->most ? o->m.bytes : o->most;
}

static size_t steps_for(const operation *o) {
  const size_t most = most_bytes(o);
  return most == 0 ? 1 : (most - 1) / piece_bytes(o) + 1;
}

static void end(operation *o) {
  transfer_count(&o->t, &o->m, *o->result, o->started);
}

// ---- steps, which the stream calls

static void host_step(void *data) {
  step *p = data;
  operation *o = p->o;
  if (!atomic_load(&o->broken)) {
    begin(o);
    if (o->t.size > 0) {
      piece_done(o, o->t.size,
          transfer_shared_host(o->t.h, o->t.write, (char *)o->t.base + o->t.base_offset, o->t.size, o->t.file_offset));
    }
    end(o);
  }
  free(p);
  operation_leave(o);
}

static void read_step(void *data) {
  step *p = data;
  operation *o = p->o;
  copy *d = descriptor_of(o->s, p->index);
  d->bytes = 0;
  if (!atomic_load(&o->broken)) {
    if (p->index == 0) {
      begin(o);
      o->w = windows_take(o->t.h);
    }
    const size_t bytes = o->ended ? 0 : bytes_of(o, p->index);
    if (bytes > 0) {
      const ssize_t n = read_piece(o, p->index);
      piece_done(o, bytes, n);
      windows_count(o->w, o->t.file_offset + (off_t)(p->index * PIECE), n > 0 ? (size_t)n : 0, o->s->context);
      post_ahead(o, p->index + 1);
      *d = (copy){.to = device_place(o, p->index), .from = (uint64_t)(uintptr_t)host_place(o, p->index), .bytes = n > 0 ? (uint64_t)n : 0};
    }
    if (p->index + 1 == steps_for(o)) {
      end(o);
      windows_leave(o->w);
      o->w = NULL;
    }
  }
  free(p);
  operation_leave(o);
}

// Descriptors for a piece, of which two windows may have a part each: bytes, fewer at the end of the file; 0 if they do not have it all.
static size_t copy_from_windows(const operation *o, size_t index, copy d[2]) {
  const size_t bytes = bytes_of(o, index);
  const off_t offset = o->t.file_offset + (off_t)(index * COPIED_PIECE);
  size_t done = 0;
  for (int i = 0; i < 2; i++) {
    const view v = windows_view(o->w, offset + (off_t)done, bytes - done);
    d[i] = (copy){.to = device_place(o, index) + done, .from = v.device, .bytes = v.bytes};
    done += v.bytes;
  }
  return done == bytes || windows_end(o->w, offset + (off_t)done) ? done : 0;
}

// The same by reading, each part to one of the two pieces of pinned memory, which no kernel uses now. As a transfer returns.
static ssize_t read_to_both(const operation *o, size_t index, copy d[2]) {
  const size_t bytes = bytes_of(o, index);
  const off_t offset = o->t.file_offset + (off_t)(index * COPIED_PIECE);
  size_t done = 0;
  for (int i = 0; i < 2; i++) {
    const size_t part = bytes - done < PIECE ? bytes - done : PIECE;
    char *to = piece_of(o->s, (size_t)i) + device_place(o, index) % 16;
    const ssize_t n = part > 0 ? transfer_shared_host(o->t.h, false, to, part, offset + (off_t)done) : 0;
    d[i] = (copy){.to = device_place(o, index) + done, .from = (uint64_t)(uintptr_t)to, .bytes = n > 0 ? (uint64_t)n : 0};
    if (n < 0 && done == 0) {
      return n;
    }
    done += n > 0 ? (size_t)n : 0;
    if (n < (ssize_t)part) {
      break;
    }
  }
  return (ssize_t)done;
}

// The file may have been changed since the call, by a write in this stream, too.
static void copied_read_step(void *data) {
  step *p = data;
  operation *o = p->o;
  copy *d = descriptor_of(o->s, p->index);
  d[0].bytes = d[1].bytes = 0;
  if (!atomic_load(&o->broken)) {
    if (p->index == 0) {
      begin(o);
      o->w = windows_take(o->t.h);
    }
    const size_t bytes = o->ended ? 0 : bytes_of(o, p->index), copied = bytes > 0 ? copy_from_windows(o, p->index, d) : 0;
    if (bytes > 0 && copied == 0) {
      d[0].bytes = d[1].bytes = 0;
      piece_done(o, bytes, read_to_both(o, p->index, d));
    } else if (bytes > 0) {
      piece_done(o, bytes, (ssize_t)copied);
    }
    if (p->index + 1 == steps_for(o)) {
      end(o);
    }
  }
  free(p);
  operation_leave(o);
}

// All kernels of the transfer are over.
static void copied_step(void *data) {
  step *p = data;
  operation *o = p->o;
  windows_leave(o->w);
  o->w = NULL;
  free(p);
  operation_leave(o);
}

// Writes the piece that the kernel before it has copied, and says what the next one copies.
static void write_step(void *data) {
  step *p = data;
  operation *o = p->o;
  if (!atomic_load(&o->broken)) {
    const size_t last = steps_for(o);
    if (p->index == 0) {
      begin(o);
    } else {
      const size_t bytes = o->ended ? 0 : bytes_of(o, p->index - 1);
      if (bytes > 0) {
        const off_t offset = o->t.file_offset + (off_t)((p->index - 1) * PIECE);
        piece_done(o, bytes, transfer_shared_host(o->t.h, true, host_place(o, p->index - 1), bytes, offset));
      }
    }
    if (p->index < last) {
      *descriptor_of(o->s, p->index) = (copy){.to = (uint64_t)(uintptr_t)host_place(o, p->index),
          .from = device_place(o, p->index),
          .bytes = o->ended ? 0 : bytes_of(o, p->index)};
    } else {
      end(o);
    }
  } else {
    descriptor_of(o->s, p->index)->bytes = 0;
  }
  free(p);
  operation_leave(o);
}

// ---- submitting

static CUresult call_step(operation *o, void (*run)(void *), size_t index) {
  enum { OUT_OF_MEMORY = 2 };
  step *p = malloc(sizeof *p);
  if (p == NULL) {
    return OUT_OF_MEMORY;
  }
  *p = (step){.o = o, .index = index};
  atomic_fetch_add(&o->users, 1);
  CUresult code = cuda_call(o->s->stream, run, p);
  if (code != 0) {
    free(p);
    operation_leave(o);
  }
  return code;
}

static CUresult call_copy(operation *o, size_t index) {
  const size_t piece = piece_bytes(o), left = most_bytes(o) - index * piece;
  return cuda_launch_copies(o->s->context, descriptor_of(o->s, index), o->copies ? 2 : 1, left < piece ? left : piece, o->s->stream);
}

static CUresult put_in_stream(operation *o) {
  const size_t steps = steps_for(o);
  CUresult code = 0;
  if (!o->m.device) {
    return call_step(o, host_step, 0);
  }
  for (size_t i = 0; i < steps && code == 0; i++) {
    code = call_step(o, o->t.write ? write_step : o->copies ? copied_read_step : read_step, i);
    code = code != 0 ? code : call_copy(o, i);
  }
  return code != 0 ? code : o->t.write ? call_step(o, write_step, steps) : o->copies ? call_step(o, copied_step, steps) : 0;
}

// With the context current.
static CUfileError_t submit(operation *o, CUstream stream, cuda_context context) {
  CUfileError_t status = status_of(CU_FILE_SUCCESS);
  if (o->m.device && o->m.context != context && !cuda_reaches(o->t.base)) {
    // The kernel would fail there, and all that comes after it in the context.
    LOG(LOG_ERROR, "%p is memory of GPU %d, which the stream's context does not reach", o->t.base, o->m.gpu);
    status = status_of(CU_FILE_CUDA_CONTEXT_MISMATCH);
  } else {
    status = state_for(stream, context, o->m.device, false, 0, &o->s);
  }
  if (status.err != CU_FILE_SUCCESS) {
    handle_leave(o->t.h);
    free(o);
    return status;
  }
  o->fixed = o->s->registered ? o->s->flags : 0;
  if (o->m.device && !o->t.write) {
    windows *w = windows_take(o->t.h);
    // The place may be another one when the stream comes to it. What is longer than pinned memory is copied if any place is in windows.
    // The kernel is quick where both sides are off alignment by the same, which pinned memory can be made for.
    o->copies = windows_have(w, o->t.file_offset, o->t.size <= PIECE ? o->t.size : SIZE_MAX) &&
                (device_place(o, 0) - (uint64_t)o->t.file_offset) % 16 == 0;
    windows_leave(w);
  }
  CUresult code = put_in_stream(o);
  if (code != 0) {
    LOG(LOG_ERROR, "the stream does not take the transfer: %s", cuda_error(code));
    atomic_store(&o->broken, true);
  }
  operation_leave(o);
  return code == 0 ? status : cuda_failed(code);
}

static CUfileError_t start(const operation *wanted, CUfileHandle_t fh, CUstream stream) {
  cuda_context context;
  caller before;
  CUresult code = cuda_stream_context(stream, &context);
  if (code != 0) {
    LOG(LOG_ERROR, "the stream has no context: %s", cuda_error(code));
    return status_of(CU_FILE_ASYNC_NOT_SUPPORTED);
  }
  operation *o = malloc(sizeof *o);
  if (o == NULL) {
    return status_of(CU_FILE_NOMEM_ERROR);
  }
  *o = *wanted;
  o->t.h = handle_use(fh);
  CUfileOpError result = o->t.h == NULL ? CU_FILE_INVALID_VALUE : CU_FILE_SUCCESS;
  if (result == CU_FILE_SUCCESS && (o->t.h->place != NULL || cuda_is_captured(stream))) {
    LOG(LOG_ERROR, "transfers in the order of a stream are not for %s",
        o->t.h->place != NULL ? "files that are storage of ours: use cuFileRead" : "streams that are being captured");
    result = CU_FILE_ASYNC_NOT_SUPPORTED;
  }
  ssize_t wrong = result == CU_FILE_SUCCESS ? transfer_memory(o->t.base, &o->m) : 0;
  if (result != CU_FILE_SUCCESS || wrong != 0) {
    if (o->t.h != NULL) {
      handle_leave(o->t.h);
    }
    free(o);
    return status_of(wrong != 0 ? (CUfileOpError)-wrong : result);
  }
  code = cuda_enter(context, &before);
  if (code != 0) {
    handle_leave(o->t.h);
    free(o);
    return cuda_failed(code);
  }
  CUfileError_t status = submit(o, stream, context);
  cuda_leave(before);
  return status;
}

static CUfileError_t run(CUfileHandle_t fh, bool write, void *base, const size_t *size, const off_t *file_offset,
    const off_t *base_offset, ssize_t *result, CUstream stream) {
  if (!library_is_open()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  if (base == NULL || size == NULL || file_offset == NULL || base_offset == NULL || result == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  const operation wanted = {
      .t = {.write = write, .base = base, .size = *size, .file_offset = *file_offset, .base_offset = *base_offset},
      .m = {.gpu = -1},
      .size = size,
      .file_offset = file_offset,
      .base_offset = base_offset,
      .result = result,
      .most = *size,
      .users = 1,
  };
  return start(&wanted, fh, stream);
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p, off_t *file_offset_p, off_t *bufPtr_offset_p,
    ssize_t *bytes_read_p, CUstream stream) {
  return run(fh, false, bufPtr_base, size_p, file_offset_p, bufPtr_offset_p, bytes_read_p, stream);
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p, off_t *file_offset_p, off_t *bufPtr_offset_p,
    ssize_t *bytes_written_p, CUstream stream) {
  return run(fh, true, bufPtr_base, size_p, file_offset_p, bufPtr_offset_p, bytes_written_p, stream);
}
