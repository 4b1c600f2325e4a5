// Transfers that the caller waits for. Host memory: pread and pwrite, straight. GPU memory: through a lane. A long read is cut into pieces,
// which workers help with.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "parts.h"

#define CUFILE_PART "io"

#define PAGE ((uintptr_t)4096)
#define PIECE (LANE_BYTES / 4)
#define MOST_HELPERS 15

// ---- one thread

// O_DIRECT wants all three aligned; what is not goes through the page cache.
static int descriptor_for(const handle *h, const char *address, size_t size, off_t offset) {
  const bool aligned = (((uintptr_t)address | size | (uintptr_t)offset) & (PAGE - 1)) == 0;
  return aligned || h->buffered < 0 ? h->fd : h->buffered;
}

static ssize_t host_alone(const handle *h, bool write, char *address, size_t size, off_t offset) {
  size_t done = 0;
  while (done < size) {
    const int fd = descriptor_for(h, address + done, size - done, offset + (off_t)done);
    ssize_t n = write ? pwrite(fd, address + done, size - done, offset + (off_t)done)
                      : pread(fd, address + done, size - done, offset + (off_t)done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && done == 0) {
      return -1;
    }
    if (n <= 0) {
      break;
    }
    done += (size_t)n;
  }
  return (ssize_t)done;
}

static ssize_t cuda_refused(CUresult code, const char *what) {
  LOG(LOG_ERROR, "%s: %s", what, cuda_error(code));
  return refused(CU_FILE_CUDA_DRIVER_ERROR);
}

static ssize_t device_write(const transfer *t, lane *l) {
  const device_address from = (device_address)(uintptr_t)t->base + (device_address)t->base_offset;
  size_t done = 0;
  while (done < t->size) {
    const size_t part = t->size - done < LANE_BYTES ? t->size - done : LANE_BYTES;
    CUresult code = cuda_to_host(l->pinned, from + done, part, l->stream);
    code = code != 0 ? code : cuda_wait(l->stream);
    if (code != 0) {
      return done > 0 ? (ssize_t)done : cuda_refused(code, "a copy from the GPU");
    }
    ssize_t n = host_alone(t->h, true, l->pinned, part, t->file_offset + (off_t)done);
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

// ---- many threads

typedef struct job job;

typedef struct help {
  task t;
  job *of;
} help;

// One transfer in pieces. It ends early at the first byte that did not come.
struct job {
  const transfer *t; // the caller's, until all pieces are done
  memory m;
  size_t pieces;
  atomic_size_t next, done;
  atomic_int users;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t end;     // guarded by lock: bytes before it came
  ssize_t result; // guarded by lock: why not more
  int error;      // guarded by lock: errno of that
  help helpers[MOST_HELPERS];
};

static void job_leave(job *j) {
  if (atomic_fetch_sub(&j->users, 1) == 1) {
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    free(j);
  }
}

static void job_stops(job *j, size_t at, ssize_t result, int error) {
  pthread_mutex_lock(&j->lock);
  if (at < j->end) {
    j->end = at;
    j->result = result;
    j->error = error;
  }
  pthread_mutex_unlock(&j->lock);
}

static void pieces_done(job *j, size_t count) {
  if (count > 0 && atomic_fetch_add(&j->done, count) + count == j->pieces) {
    pthread_mutex_lock(&j->lock);
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
  }
}

static size_t piece_bytes(const job *j, size_t begin) {
  return j->t->size - begin < PIECE ? j->t->size - begin : PIECE;
}

// One piece of a read into memory of the host.
static void host_piece(job *j, size_t begin) {
  const transfer *t = j->t;
  char *address = (char *)t->base + t->base_offset + begin;
  const size_t bytes = piece_bytes(j, begin);
  ssize_t n = host_alone(t->h, t->write, address, bytes, t->file_offset + (off_t)begin);
  if (n < (ssize_t)bytes) {
    job_stops(j, begin + (n > 0 ? (size_t)n : 0), n < 0 ? n : 0, errno);
  }
}

// The same into memory of the GPU: the copy runs while the next piece is read.
static void device_piece(job *j, size_t begin, lane *l, char *pinned) {
  const transfer *t = j->t;
  const device_address to = (device_address)(uintptr_t)t->base + (device_address)t->base_offset + begin;
  const size_t bytes = piece_bytes(j, begin);
  ssize_t n = host_alone(t->h, false, pinned, bytes, t->file_offset + (off_t)begin);
  int error = errno;
  CUresult code = n > 0 ? cuda_to_device(to, pinned, (size_t)n, l->stream) : 0;
  if (code != 0) {
    job_stops(j, begin, cuda_refused(code, "a copy to the GPU"), 0);
  } else if (n < (ssize_t)bytes) {
    job_stops(j, begin + (n > 0 ? (size_t)n : 0), n < 0 ? n : 0, error);
  }
}

static void device_pieces(job *j) {
  enum { QUARTERS = LANE_BYTES / PIECE };
  caller before;
  lane *l = NULL;
  size_t mine = 0, index = atomic_fetch_add(&j->next, 1);
  // Who comes too late leaves CUDA alone: the caller may have returned, and ended the context.
  CUresult code = index < j->pieces ? lane_take(j->m.context, &l, &before) : 0;
  for (; index < j->pieces; index = atomic_fetch_add(&j->next, 1)) {
    if (code != 0) {
      job_stops(j, index * PIECE, cuda_refused(code, "pinned memory and a stream for copies"), 0);
      pieces_done(j, 1);
      continue;
    }
    device_piece(j, index * PIECE, l, l->pinned + mine * PIECE);
    if (++mine == QUARTERS) {
      if ((code = cuda_wait(l->stream)) != 0) {
        job_stops(j, 0, cuda_refused(code, "copies to the GPU"), 0);
      }
      pieces_done(j, mine);
      mine = 0;
    }
  }
  if (l != NULL && mine > 0) {
    if (code == 0 && (code = cuda_wait(l->stream)) != 0) {
      job_stops(j, 0, cuda_refused(code, "copies to the GPU"), 0);
    }
    pieces_done(j, mine);
  }
  if (l != NULL) {
    lane_give(l, before);
  }
}

static void do_pieces(job *j) {
  size_t index;
  if (j->m.device) {
    device_pieces(j);
    return;
  }
  while ((index = atomic_fetch_add(&j->next, 1)) < j->pieces) {
    host_piece(j, index * PIECE);
    pieces_done(j, 1);
  }
}

static void run_help(task *t) {
  job *j = ((help *)t)->of;
  do_pieces(j);
  job_leave(j);
}

static int helpers_for(size_t pieces) {
  size_t most = setting_size(CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM);
  size_t limit = (size_t)workers_limit();
  limit = most > 0 && most < limit ? most : limit;
  limit = pieces < limit ? pieces : limit;
  return (int)limit - 1 < MOST_HELPERS ? (int)limit - 1 : MOST_HELPERS;
}

static void call_helpers(job *j, int count) {
  for (int i = 0; i < count; i++) {
    j->helpers[i] = (help){.t.run = run_help, .of = j};
    atomic_fetch_add(&j->users, 1);
    if (!workers_post(&j->helpers[i].t)) {
      atomic_fetch_sub(&j->users, 1);
      return;
    }
  }
}

static ssize_t in_pieces(const transfer *t, const memory *m, bool alone) {
  job *j = calloc(1, sizeof *j);
  if (j == NULL) {
    return refused(CU_FILE_NOMEM_ERROR);
  }
  j->t = t;
  j->m = *m;
  j->pieces = (t->size + PIECE - 1) / PIECE;
  j->users = 1;
  j->end = t->size;
  pthread_mutex_init(&j->lock, NULL);
  pthread_cond_init(&j->changed, NULL);
  if (!alone) {
    call_helpers(j, helpers_for(j->pieces));
  }
  do_pieces(j);
  pthread_mutex_lock(&j->lock);
  while (atomic_load(&j->done) < j->pieces) {
    pthread_cond_wait(&j->changed, &j->lock);
  }
  ssize_t result = j->end > 0 ? (ssize_t)j->end : j->result;
  int error = j->error;
  pthread_mutex_unlock(&j->lock);
  job_leave(j);
  if (result == -1) {
    errno = error;
  }
  return result;
}

// ---- both

// A short read into memory of the GPU needs no more than a lane.
static ssize_t device_read(const transfer *t, lane *l) {
  const device_address to = (device_address)(uintptr_t)t->base + (device_address)t->base_offset;
  ssize_t n = host_alone(t->h, false, l->pinned, t->size, t->file_offset);
  if (n <= 0) {
    return n;
  }
  CUresult code = cuda_to_device(to, l->pinned, (size_t)n, l->stream);
  code = code != 0 ? code : cuda_wait(l->stream);
  return code != 0 ? cuda_refused(code, "a copy to the GPU") : n;
}

static ssize_t through_lane(const transfer *t, const memory *m) {
  caller before;
  lane *l;
  CUresult code = lane_take(m->context, &l, &before);
  if (code != 0) {
    return cuda_refused(code, "pinned memory and a stream for copies");
  }
  ssize_t result = t->write ? device_write(t, l) : device_read(t, l);
  int error = errno;
  lane_give(l, before);
  errno = error;
  return result;
}

// Copies what windows have of a read, from its start on.
static ssize_t from_windows(const transfer *t, const memory *m, const windows *w) {
  const device_address to = (device_address)(uintptr_t)t->base + (device_address)t->base_offset;
  view v = windows_view(w, t->file_offset, t->size);
  size_t done = 0;
  caller before;
  lane *l;
  if (v.bytes == 0) {
    return 0;
  }
  CUresult code = lane_take(m->context, &l, &before);
  if (code != 0) {
    return cuda_refused(code, "pinned memory and a stream for copies");
  }
  for (; v.bytes > 0 && code == 0; v = windows_view(w, t->file_offset + (off_t)done, t->size - done)) {
    code = cuda_to_device(to + done, v.host, v.bytes, l->stream);
    done += v.bytes;
  }
  CUresult end = cuda_wait(l->stream);
  code = code != 0 ? code : end;
  lane_give(l, before);
  return code != 0 ? cuda_refused(code, "a copy from the page cache to the GPU") : (ssize_t)done;
}

// Threads that read for the GPU. Where there are many, none of them needs help, which costs more calls of CUDA.
static atomic_int reading;

static ssize_t by_reading(const transfer *t, const memory *m, bool alone) {
  const bool busy = 2 * (atomic_fetch_add(&reading, 1) + 1) >= workers_limit();
  ssize_t n = t->size > LANE_BYTES || (t->size > 2 * PIECE && !alone && !busy) ? in_pieces(t, m, alone || busy) : through_lane(t, m);
  atomic_fetch_sub(&reading, 1);
  return n;
}

static ssize_t read_to_device(const transfer *t, const memory *m, bool alone) {
  windows *w = windows_take(t->h);
  ssize_t result = from_windows(t, m, w);
  if (result >= 0 && (size_t)result < t->size) {
    transfer rest = *t;
    rest.size -= (size_t)result;
    rest.file_offset += result;
    rest.base_offset += result;
    ssize_t n = by_reading(&rest, m, alone);
    windows_count(w, rest.file_offset, n > 0 ? (size_t)n : 0, m->context);
    result = n > 0 || result == 0 ? result + n : result;
  }
  int error = errno;
  windows_leave(w);
  errno = error;
  return result;
}

static ssize_t move(const transfer *t, const memory *m, bool alone) {
  if (t->h->place != NULL) {
    uint64_t address = (uint64_t)(uintptr_t)t->base + (uint64_t)t->base_offset;
    return place_transfer(t->h->place, t->write, (uint64_t)t->file_offset, address, t->size);
  }
  if (m->device) {
    return t->write ? through_lane(t, m) : read_to_device(t, m, alone);
  }
  if (!t->write && t->size > 2 * PIECE) {
    return in_pieces(t, m, alone);
  }
  return host_alone(t->h, t->write, (char *)t->base + t->base_offset, t->size, t->file_offset);
}

ssize_t transfer_shared_host(handle *h, bool write, char *address, size_t size, off_t offset) {
  const transfer t = {.h = h, .write = write, .base = address, .size = size, .file_offset = offset};
  const memory m = {.gpu = -1};
  return move(&t, &m, false);
}

ssize_t transfer_memory(const void *base, memory *m) {
  if (base == NULL) {
    return refused(CU_FILE_INVALID_VALUE);
  }
  if (buffer_find(base, m)) {
    return 0;
  }
  CUresult code = cuda_memory(base, m);
  return code == 0 ? 0 : cuda_refused(code, "what memory an address is");
}

ssize_t transfer_check(const transfer *t, const memory *m) {
  if (t->base_offset < 0 || t->size > SSIZE_MAX) {
    return refused(CU_FILE_INVALID_VALUE);
  }
  if (t->file_offset < 0 || (off_t)t->size > INT64_MAX - t->file_offset) {
    errno = EINVAL;
    return -1;
  }
  if (t->write ? !t->h->writes : !t->h->reads) {
    errno = EBADF;
    return -1;
  }
  const uint64_t from = (uint64_t)(uintptr_t)t->base + (uint64_t)t->base_offset - m->begin;
  if (m->bytes > 0 && (from > m->bytes || t->size > m->bytes - from)) {
    return refused(m->registered ? CU_FILE_INVALID_MAPPING_RANGE : CU_FILE_CUDA_POINTER_RANGE_ERROR);
  }
  if (!m->device && !setting_bool(CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY)) {
    return refused(CU_FILE_CUDA_MEMORY_TYPE_INVALID);
  }
  return 0;
}

// ---- many by one thread

// Reads into GPU memory that share a lane: what lies side by side on both sides is one copy, one kernel does all copies, and all are waited
// for together.
typedef struct gather {
  lane *l;
  caller before;
  size_t used;   // of the lane
  size_t first;  // the transfers from here on wait for their copies
  size_t copies; // in the lane
  const char *from[MOST_COPIES]; // of each, for CUDA's copies
  const handle *of;              // whose windows were looked at last
  windows *w;
  windows *held[MOST_COPIES];
  size_t holds;
} gather;

// Where the next read of a transfer begins in the lane: O_DIRECT wants it aligned.
static size_t gather_begin(size_t used, const transfer *t) {
  const size_t align = t->h->direct ? PAGE : 16;
  return (used + align - 1) / align * align;
}

// What was read lies side by side in the lane. Windows are pinned each by itself, and no copy of CUDA's may be from two.
static void gather_copy(gather *g, device_address to, device_address from, const char *host, size_t bytes, bool was_read) {
  copy *last = g->l->copies + g->copies;
  if (was_read && g->copies > 0 && to == last[-1].to + last[-1].bytes && host == g->from[g->copies - 1] + last[-1].bytes) {
    last[-1].bytes += bytes;
    return;
  }
  g->from[g->copies++] = host;
  *last = (copy){.to = to, .from = from, .bytes = bytes};
}

static CUresult gather_start(const gather *g) {
  const copy *c = g->l->copies;
  CUresult code = 0;
  size_t most = 0;
  for (size_t i = 0; i < g->copies; i++) {
    most = c[i].bytes > most ? c[i].bytes : most;
  }
  if (g->copies > 1 && cuda_prepare_copy(g->l->context, false) == 0) {
    return cuda_launch_copies(g->l->context, c, (unsigned)g->copies, most, g->l->stream);
  }
  for (size_t i = 0; i < g->copies && code == 0; i++) {
    code = cuda_to_device(c[i].to, g->from[i], c[i].bytes, g->l->stream);
  }
  return code;
}

// All copies are over; transfers whose copy failed say so.
static void gather_end(gather *g, ssize_t *results, const bool *gathered, size_t count) {
  if (g->l != NULL) {
    CUresult code = gather_start(g), end = cuda_wait(g->l->stream);
    code = code != 0 ? code : end;
    for (size_t i = g->first; code != 0 && i < count; i++) {
      if (gathered[i] && results[i] > 0) {
        results[i] = cuda_refused(code, "copies to the GPU");
      }
    }
    lane_give(g->l, g->before);
  }
  for (size_t i = 0; i < g->holds; i++) {
    windows_leave(g->held[i]);
  }
  *g = (gather){.first = count};
}

bool transfer_gathers(const transfer *t, const memory *m) {
  return m->device && !t->write && t->h->place == NULL && t->size <= PIECE;
}

// Looks for the windows of the transfer's file, and whether they have all that it reads.
static view gather_view(gather *g, const transfer *t) {
  if (g->of != t->h) {
    g->of = t->h;
    g->w = windows_take(t->h);
    if (g->w != NULL) {
      g->held[g->holds++] = g->w;
    }
  }
  view v = windows_view(g->w, t->file_offset, t->size);
  return v.bytes == t->size ? v : (view){.bytes = 0};
}

static ssize_t gather_one(gather *g, const transfer *t, const view *v) {
  const device_address to = (device_address)(uintptr_t)t->base + (device_address)t->base_offset;
  if (v->bytes > 0) {
    gather_copy(g, to, v->device, v->host, v->bytes, false);
    return (ssize_t)v->bytes;
  }
  g->used = gather_begin(g->used, t);
  char *pinned = g->l->pinned + g->used;
  ssize_t n = host_alone(t->h, false, pinned, t->size, t->file_offset);
  if (n <= 0) {
    return n < 0 && n == -1 ? -errno : n;
  }
  windows_count(g->w, t->file_offset, (size_t)n, g->l->context);
  gather_copy(g, to, (device_address)(uintptr_t)pinned, pinned, (size_t)n, true);
  g->used += (size_t)n;
  return n;
}

void transfers_run(const transfer *all, const memory *of, ssize_t *results, size_t count) {
  gather g = {.first = 0};
  bool gathered[count + 1];
  for (size_t i = 0; i < count; i++) {
    const transfer *t = &all[i];
    gathered[i] = transfer_gathers(t, &of[i]);
    if (!gathered[i] || (g.l != NULL && g.l->context != of[i].context)) {
      gather_end(&g, results, gathered, i);
    }
    if (!gathered[i]) {
      results[i] = move(t, &of[i], true);
      results[i] = results[i] == -1 ? -errno : results[i];
      continue;
    }
    view v = gather_view(&g, t);
    if (g.l != NULL && v.bytes == 0 && gather_begin(g.used, t) + t->size > LANE_BYTES) {
      gather_end(&g, results, gathered, i);
      gather_view(&g, t);
    }
    CUresult code = 0;
    if (g.l == NULL) {
      code = lane_take(of[i].context, &g.l, &g.before);
      g.first = i;
    }
    if (code != 0) {
      g.l = NULL;
      results[i] = cuda_refused(code, "pinned memory and a stream for copies");
    } else {
      results[i] = gather_one(&g, t, &v);
    }
  }
  gather_end(&g, results, gathered, count);
}

// ---- counted

void transfer_count(const transfer *t, const memory *m, ssize_t result, uint64_t started) {
  if (stats_on()) {
    const bool unaligned = (((uintptr_t)t->base + (uintptr_t)t->base_offset) | t->size | (uintptr_t)t->file_offset) & (PAGE - 1);
    stats_transfer(t->write, result, started, m->device ? m->gpu : -1, unaligned, t->h != NULL && t->h->place != NULL);
  }
}

ssize_t transfer_run(const transfer *t) {
  memory m = {.gpu = -1};
  uint64_t started = stats_clock();
  ssize_t result = transfer_memory(t->base, &m);
  result = result != 0 ? result : transfer_check(t, &m);
  if (result == 0 && t->size > 0) {
    result = move(t, &m, false);
  }
  int error = errno;
  transfer_count(t, &m, result, started);
  errno = error;
  return result;
}

static ssize_t run(CUfileHandle_t fh, bool write, void *base, size_t size, off_t file_offset, off_t base_offset) {
  if (library_forked()) {
    return refused(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  handle *h = library_is_open() ? handle_use(fh) : NULL;
  if (h == NULL) {
    const memory m = {.gpu = -1};
    const transfer t = {.write = write};
    transfer_count(&t, &m, -1, stats_clock());
    errno = EINVAL;
    return -1;
  }
  const transfer t = {.h = h, .write = write, .base = base, .size = size, .file_offset = file_offset, .base_offset = base_offset};
  ssize_t result = transfer_run(&t);
  int error = errno;
  handle_leave(h);
  errno = error;
  return result;
}

ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset) {
  return run(fh, false, bufPtr_base, size, file_offset, bufPtr_offset);
}

// Memory is only read, that way.
ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size, off_t file_offset, off_t bufPtr_offset) {
  return run(fh, true, (void *)bufPtr_base, size, file_offset, bufPtr_offset);
}
