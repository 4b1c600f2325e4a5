// Batches: requests that workers do, and whose results are fetched.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

#define CUFILE_PART "batch"

enum { GROUP = 16, COPIED_GROUP = MOST_COPIES }; // requests that one worker takes at a time: that it reads; that a kernel only copies

enum entry_state { FREE, WAITING, RUNNING, DONE };

typedef struct entry {
  enum entry_state state;
  transfer t;
  memory m;
  void *cookie;
  uint64_t started;
  CUfileIOEvents_t event; // of DONE
  unsigned next_done;
} entry;

typedef struct batch {
  struct batch *next;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int users;          // guarded by the lock of the list
  unsigned capacity;  // entries
  unsigned unfinished, finished;
  bool cancelled; // since the last submission
  unsigned first_done, last_done; // the finished ones in their order; capacity is none
  atomic_uint ends;               // how often some finished
  entry entries[];
} batch;

typedef struct group {
  task t;
  batch *b;
  unsigned count;
  unsigned entries[COPIED_GROUP];
} group;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static batch *all; // guarded by lock

static void batch_free(batch *b) {
  pthread_cond_destroy(&b->changed);
  pthread_mutex_destroy(&b->lock);
  free(b);
}

static void batch_leave(batch *b) {
  pthread_mutex_lock(&lock);
  bool last = --b->users == 0;
  pthread_mutex_unlock(&lock);
  if (last) {
    batch_free(b);
  }
}

static void batch_hold(batch *b) {
  pthread_mutex_lock(&lock);
  b->users++;
  pthread_mutex_unlock(&lock);
}

// The batch, if it is one, which stays until batch_leave; taken out of the list if it ends.
static batch *batch_use(CUfileBatchHandle_t id, bool ends) {
  pthread_mutex_lock(&lock);
  batch **at = &all;
  while (*at != NULL && *at != id) {
    at = &(*at)->next;
  }
  batch *b = *at;
  if (b != NULL && ends) {
    *at = b->next;
  } else if (b != NULL) {
    b->users++;
  }
  pthread_mutex_unlock(&lock);
  return b;
}

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned nr) {
  CUfileOpError code = library_begin();
  if (code != CU_FILE_SUCCESS) {
    return status_of(code);
  }
  if (batch_idp == NULL || nr == 0 || nr > setting_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE)) {
    stats_count(COUNT_BATCH_SETUP, false);
    return status_of(CU_FILE_INVALID_VALUE);
  }
  batch *b = calloc(1, sizeof *b + nr * sizeof *b->entries);
  stats_count(COUNT_BATCH_SETUP, b != NULL);
  if (b == NULL) {
    return status_of(CU_FILE_NOMEM_ERROR);
  }
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  b->users = 1;
  b->capacity = nr;
  b->first_done = b->last_done = nr;
  pthread_mutex_lock(&lock);
  b->next = all;
  all = b;
  pthread_mutex_unlock(&lock);
  *batch_idp = b;
  return status_of(CU_FILE_SUCCESS);
}

// ---- running

// With the lock of the batch.
static void finish(batch *b, unsigned at, CUfileStatus_t status, ssize_t result) {
  entry *e = &b->entries[at];
  e->event = (CUfileIOEvents_t){.cookie = e->cookie, .status = status, .ret = (size_t)result};
  e->state = DONE;
  e->next_done = b->capacity;
  if (b->first_done == b->capacity) {
    b->first_done = at;
  } else {
    b->entries[b->last_done].next_done = at;
  }
  b->last_done = at;
  b->unfinished--;
  b->finished++;
}

static void do_group(const group *g) {
  batch *b = g->b;
  transfer transfers[COPIED_GROUP];
  memory memories[COPIED_GROUP];
  ssize_t results[COPIED_GROUP];
  unsigned mine[COPIED_GROUP], count = 0;
  pthread_mutex_lock(&b->lock);
  for (unsigned i = 0; i < g->count; i++) {
    entry *e = &b->entries[g->entries[i]];
    if (e->state == WAITING) {
      e->state = RUNNING;
      mine[count] = g->entries[i];
      transfers[count] = e->t;
      memories[count++] = e->m;
    }
  }
  pthread_mutex_unlock(&b->lock);
  transfers_run(transfers, memories, results, count);
  for (unsigned i = 0; i < count; i++) {
    entry *e = &b->entries[mine[i]];
    transfer_count(&e->t, &e->m, results[i], e->started);
    stats_count(e->t.h->place != NULL ? COUNT_BATCH_PROCESSED : COUNT_BATCH_POSIX_PROCESSED, results[i] >= 0);
    stats_batch(e->t.write, results[i] > 0 ? (size_t)results[i] : 0, e->started == 0 ? 0 : stats_clock() - e->started);
    handle_leave(transfers[i].h);
  }
  pthread_mutex_lock(&b->lock);
  for (unsigned i = 0; i < count; i++) {
    finish(b, mine[i], results[i] < 0 ? CUFILE_FAILED : CUFILE_COMPLETE, results[i]);
  }
  atomic_fetch_add(&b->ends, 1);
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->lock);
  batch_leave(b);
}

static void run_group(task *t) {
  do_group((group *)t);
  free(t);
}

// ---- submitting

// Whether an entry can be a request at all, and what of; its handle is held then.
static CUfileOpError take(const CUfileIOParams_t *p, entry *e) {
  if (p->mode != CUFILE_BATCH || p->opcode > CUFILE_WRITE || p->u.batch.devPtr_base == NULL) {
    LOG(LOG_ERROR, "a request has no mode, operation or memory that there is");
    return CU_FILE_INVALID_VALUE;
  }
  *e = (entry){.state = WAITING, .cookie = p->cookie, .started = stats_clock(), .m = {.gpu = -1}};
  e->t = (transfer){.write = p->opcode == CUFILE_WRITE,
      .base = p->u.batch.devPtr_base,
      .size = p->u.batch.size,
      .file_offset = p->u.batch.file_offset,
      .base_offset = p->u.batch.devPtr_offset};
  e->t.h = handle_use(p->fh);
  if (e->t.h == NULL) {
    LOG(LOG_ERROR, "a request has a file that is not registered");
    return CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
  }
  return CU_FILE_SUCCESS;
}

// With the lock of the batch: the free entries that the requests get, in places.
static CUfileOpError fill(batch *b, unsigned nr, const CUfileIOParams_t *params, unsigned *places) {
  unsigned count = 0;
  CUfileOpError code = nr > b->capacity - b->unfinished - b->finished ? CU_FILE_BATCH_FULL : CU_FILE_SUCCESS;
  for (unsigned i = 0; code == CU_FILE_SUCCESS && count < nr; i++) {
    if (b->entries[i].state == FREE) {
      code = take(&params[count], &b->entries[i]);
      if (code == CU_FILE_SUCCESS) {
        places[count++] = i;
      } else {
        b->entries[i].state = FREE;
      }
    }
  }
  for (unsigned i = 0; code != CU_FILE_SUCCESS && i < count; i++) {
    handle_leave(b->entries[places[i]].t.h);
    b->entries[places[i]].state = FREE;
  }
  b->unfinished += code == CU_FILE_SUCCESS ? nr : 0;
  return code;
}

// With the lock of the batch: what is out of range ends at once.
static void look_at(batch *b, unsigned at) {
  entry *e = &b->entries[at];
  stats_count(e->t.h->place != NULL ? COUNT_BATCH_ENQUEUED : COUNT_BATCH_POSIX_ENQUEUED, true);
  ssize_t result = transfer_memory(e->t.base, &e->m);
  result = result != 0 ? result : transfer_check(&e->t, &e->m);
  if (result == 0 && e->t.size > 0) {
    return;
  }
  result = result == -1 ? -errno : result;
  transfer_count(&e->t, &e->m, result, e->started);
  stats_count(e->t.h->place != NULL ? COUNT_BATCH_PROCESSED : COUNT_BATCH_POSIX_PROCESSED, result >= 0);
  handle_leave(e->t.h);
  finish(b, at, result < 0 ? CUFILE_FAILED : CUFILE_COMPLETE, result);
}

// With the lock of the batch. Whether all are short and wait for bytes of one file that windows have, for the memory of GPUs.
static bool are_in_windows(const batch *b, const unsigned *places, unsigned nr) {
  windows *w = NULL;
  bool all = true;
  for (unsigned i = 0; all && i < nr; i++) {
    const entry *e = &b->entries[places[i]];
    all = e->state == WAITING && transfer_gathers(&e->t, &e->m);
    w = i == 0 && all ? windows_take(e->t.h) : w;
    all = all && w != NULL && e->t.h == b->entries[places[0]].t.h && windows_view(w, e->t.file_offset, e->t.size).bytes == e->t.size;
  }
  windows_leave(w);
  return all;
}

// Groups of requests, for a worker each; the caller does what nobody takes.
static void start(batch *b, const unsigned *places, unsigned nr, bool copied) {
  const unsigned workers = (unsigned)workers_limit();
  unsigned each = (nr + workers - 1) / workers;
  each = each < GROUP ? each : GROUP;
  each = copied ? COPIED_GROUP : each;
  for (unsigned at = 0; at < nr; at += each) {
    group *g = malloc(sizeof *g), here;
    const unsigned count = nr - at < each ? nr - at : each;
    *(g != NULL ? g : &here) = (group){.t.run = run_group, .b = b, .count = count};
    memcpy((g != NULL ? g : &here)->entries, places + at, count * sizeof *places);
    batch_hold(b);
    if (g == NULL) {
      do_group(&here);
    } else if (!workers_post(&g->t)) {
      run_group(&g->t);
    }
  }
}

// With the lock of the batch, of which some are finished: the first of them, whose entry is free then.
static CUfileIOEvents_t fetch(batch *b) {
  entry *e = &b->entries[b->first_done];
  b->first_done = e->next_done;
  b->finished--;
  e->state = FREE;
  return e->event;
}

// With the lock of the batch. Programs cancel a batch and submit to it again, and fetch no events between: what was cancelled has no
// events then, and nothing of it uses memory any more.
static void renew(batch *b) {
  while (b->cancelled && b->unfinished > 0) {
    pthread_cond_wait(&b->changed, &b->lock);
  }
  while (b->cancelled && b->finished > 0) {
    fetch(b);
  }
  b->cancelled = false;
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr, CUfileIOParams_t *iocbp, unsigned int flags) {
  (void)flags; // nothing says what they would mean
  batch *b = library_is_open() && iocbp != NULL && nr > 0 ? batch_use(batch_idp, false) : NULL;
  if (b == NULL) {
    stats_count(COUNT_BATCH_SUBMIT, false);
    return status_of(library_is_open() ? CU_FILE_INVALID_VALUE : CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  unsigned *places = malloc(nr <= b->capacity ? nr * sizeof *places : sizeof *places);
  CUfileOpError code = places == NULL ? CU_FILE_NOMEM_ERROR : CU_FILE_SUCCESS;
  bool copied = false;
  if (code == CU_FILE_SUCCESS) {
    pthread_mutex_lock(&b->lock);
    renew(b);
    code = fill(b, nr, iocbp, places);
    for (unsigned i = 0; code == CU_FILE_SUCCESS && i < nr; i++) {
      look_at(b, places[i]);
    }
    copied = code == CU_FILE_SUCCESS && are_in_windows(b, places, nr);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
  }
  stats_count(COUNT_BATCH_SUBMIT, code == CU_FILE_SUCCESS);
  if (code == CU_FILE_SUCCESS) {
    start(b, places, nr, copied);
  }
  free(places);
  batch_leave(b);
  return status_of(code);
}

// ---- results

// With the lock of the batch. Waits until so many are finished, or nothing more will be, or until the time.
static void wait_for(batch *b, unsigned least, const struct timespec *timeout) {
  enum { YEAR = 365 * 24 * 3600 };
  struct timespec limit;
  int error = 0;
  timeout = timeout != NULL && timeout->tv_sec > 100L * YEAR ? NULL : timeout; // no clock gets there
  clock_gettime(CLOCK_MONOTONIC, &limit);
  if (timeout != NULL) {
    limit.tv_sec += timeout->tv_sec;
    limit.tv_nsec += timeout->tv_nsec;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
  }
  const bool looks = timeout == NULL || timeout->tv_sec > 0 || timeout->tv_nsec >= LOOK_NANOSECONDS;
  if (looks && b->finished < least && b->unfinished > 0) {
    const unsigned ends = atomic_load(&b->ends);
    pthread_mutex_unlock(&b->lock);
    workers_look(&b->ends, ends);
    pthread_mutex_lock(&b->lock);
  }
  while (b->finished < least && b->unfinished > 0 && error == 0) {
    error = timeout == NULL ? pthread_cond_wait(&b->changed, &b->lock) : pthread_cond_timedwait(&b->changed, &b->lock, &limit);
  }
}

CUfileError_t cuFileBatchIOGetStatus(
    CUfileBatchHandle_t batch_idp, unsigned min_nr, unsigned *nr, CUfileIOEvents_t *iocbp, struct timespec *timeout) {
  const bool good = nr != NULL && iocbp != NULL && min_nr <= *nr &&
                    (timeout == NULL || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000));
  batch *b = library_is_open() && good ? batch_use(batch_idp, false) : NULL;
  if (b == NULL) {
    return status_of(library_is_open() ? CU_FILE_INVALID_VALUE : CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  pthread_mutex_lock(&b->lock);
  wait_for(b, min_nr, timeout);
  unsigned count = 0;
  while (count < *nr && b->finished > 0) {
    iocbp[count] = fetch(b);
    stats_count(COUNT_BATCH_COMPLETE, iocbp[count++].status == CUFILE_COMPLETE);
  }
  *nr = count;
  pthread_mutex_unlock(&b->lock);
  batch_leave(b);
  return status_of(CU_FILE_SUCCESS);
}

// With the lock of the batch. What no worker has begun ends here.
static void cancel(batch *b) {
  for (unsigned i = 0; i < b->capacity; i++) {
    if (b->entries[i].state == WAITING) {
      handle_leave(b->entries[i].t.h);
      finish(b, i, CUFILE_CANCELED, 0);
    }
  }
  b->cancelled = true;
  pthread_cond_broadcast(&b->changed);
}

CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp) {
  batch *b = library_is_open() ? batch_use(batch_idp, false) : NULL;
  stats_count(COUNT_BATCH_CANCEL, b != NULL);
  if (b == NULL) {
    return status_of(library_is_open() ? CU_FILE_INVALID_VALUE : CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  pthread_mutex_lock(&b->lock);
  cancel(b);
  pthread_mutex_unlock(&b->lock);
  batch_leave(b);
  return status_of(CU_FILE_SUCCESS);
}

// Returns when nothing uses the memory of its requests.
void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp) {
  batch *b = library_forked() ? NULL : batch_use(batch_idp, true);
  stats_count(COUNT_BATCH_DESTROY, b != NULL);
  if (b == NULL) {
    return;
  }
  pthread_mutex_lock(&b->lock);
  cancel(b);
  while (b->unfinished > 0) {
    pthread_cond_wait(&b->changed, &b->lock);
  }
  pthread_mutex_unlock(&b->lock);
  batch_leave(b);
}
