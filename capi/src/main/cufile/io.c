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

static ssize_t move(const transfer *t, const memory *m, bool alone) {
  if (t->h->place != NULL) {
    uint64_t address = (uint64_t)(uintptr_t)t->base + (uint64_t)t->base_offset;
    return place_transfer(t->h->place, t->write, (uint64_t)t->file_offset, address, t->size);
  }
  if (!t->write && (t->size > 2 * PIECE || (m->device && t->size > LANE_BYTES))) {
    return in_pieces(t, m, alone);
  }
  if (m->device) {
    return through_lane(t, m);
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

// Where the next read of a transfer begins in the lane: O_DIRECT wants it aligned.
static size_t gather_begin(size_t used, const transfer *t) {
  const size_t align = t->h->direct ? PAGE : 16;
  return (used + align - 1) / align * align;
}

// Reads into GPU memory that share a lane: what lies side by side on both sides is one copy, and all are waited for together.
typedef struct gather {
  lane *l;
  caller before;
  size_t used;         // of the lane
  size_t first;        // the transfers from here on wait for their copies
  device_address to;   // the copy that may grow
  const char *from;
  size_t bytes;
  CUresult code;
} gather;

static void gather_copy(gather *g) {
  if (g->bytes > 0 && g->code == 0) {
    g->code = cuda_to_device(g->to, g->from, g->bytes, g->l->stream);
  }
  g->bytes = 0;
}

// All copies are over; transfers whose copy failed say so.
static void gather_end(gather *g, ssize_t *results, const bool *gathered, size_t count) {
  if (g->l == NULL) {
    return;
  }
  gather_copy(g);
  CUresult code = cuda_wait(g->l->stream);
  code = g->code != 0 ? g->code : code;
  for (size_t i = g->first; code != 0 && i < count; i++) {
    if (gathered[i] && results[i] > 0) {
      results[i] = cuda_refused(code, "copies to the GPU");
    }
  }
  lane_give(g->l, g->before);
  *g = (gather){.first = count};
}

static bool gathers(const transfer *t, const memory *m) {
  return m->device && !t->write && t->h->place == NULL && t->size <= PIECE;
}

static ssize_t gather_one(gather *g, const transfer *t) {
  g->used = gather_begin(g->used, t);
  char *pinned = g->l->pinned + g->used;
  const device_address to = (device_address)(uintptr_t)t->base + (device_address)t->base_offset;
  ssize_t n = host_alone(t->h, false, pinned, t->size, t->file_offset);
  if (n <= 0) {
    return n < 0 && n == -1 ? -errno : n;
  }
  if (to != g->to + g->bytes || pinned != g->from + g->bytes) {
    gather_copy(g);
    g->to = to;
    g->from = pinned;
  }
  g->bytes += (size_t)n;
  g->used += (size_t)n;
  return n;
}

void transfers_run(const transfer *all, const memory *of, ssize_t *results, size_t count) {
  gather g = {.first = 0};
  bool gathered[count + 1];
  for (size_t i = 0; i < count; i++) {
    const transfer *t = &all[i];
    gathered[i] = gathers(t, &of[i]);
    if (g.l != NULL && (!gathered[i] || g.l->context != of[i].context || gather_begin(g.used, t) + t->size > LANE_BYTES)) {
      gather_end(&g, results, gathered, i);
    }
    if (gathered[i] && g.l == NULL) {
      CUresult code = lane_take(of[i].context, &g.l, &g.before);
      g.first = i;
      if (code != 0) {
        g.l = NULL;
        results[i] = cuda_refused(code, "pinned memory and a stream for copies");
        continue;
      }
    }
    if (gathered[i]) {
      results[i] = gather_one(&g, t);
    } else {
      results[i] = move(t, &of[i], true);
      results[i] = results[i] == -1 ? -errno : results[i];
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
