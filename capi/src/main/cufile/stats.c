// Statistics: what really ran. Nothing is counted until they are started; level 0 has none.
#include <string.h>
#include <time.h>

#include "parts.h"

#define CUFILE_PART "stats"

enum { MOST_GPUS = 16, BUCKETS = 32, DIRECTIONS = 2 };

typedef struct traffic {
  atomic_ullong bytes, microseconds, batch_bytes, batch_microseconds, last_batch_bytes;
  atomic_ullong sizes[BUCKETS];
} traffic;

typedef struct gpu_traffic {
  atomic_ullong bytes, microseconds, total, ours, through_host, unaligned, failed;
} gpu_traffic;

typedef struct gpu_counts {
  gpu_traffic by[DIRECTIONS];
  atomic_ullong maps, maps_good, maps_bad, unmaps, mapped_bytes;
} gpu_counts;

static struct {
  atomic_ullong good[COUNTERS], bad[COUNTERS];
  traffic by[DIRECTIONS];
  gpu_counts gpus[MOST_GPUS];
} counts;

static atomic_int level;
static atomic_bool on;
static atomic_ullong since; // microseconds of the clock when counting began

static uint64_t clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void reset(void) {
  atomic_ullong *all = (atomic_ullong *)&counts;
  for (size_t i = 0; i < sizeof counts / sizeof *all; i++) {
    atomic_store_explicit(&all[i], 0, memory_order_relaxed);
  }
  atomic_store(&since, clock_now());
}

void stats_begin(int wanted) {
  if (wanted > 0) {
    atomic_store(&level, wanted);
    reset();
    atomic_store(&on, true);
  }
}

void stats_end(void) {
  atomic_store(&on, false);
}

bool stats_on(void) {
  return atomic_load_explicit(&on, memory_order_relaxed);
}

uint64_t stats_clock(void) {
  return stats_on() ? clock_now() : 0;
}

static void add(atomic_ullong *to, uint64_t more) {
  atomic_fetch_add_explicit(to, more, memory_order_relaxed);
}

static uint64_t get(const atomic_ullong *of) {
  return atomic_load_explicit(of, memory_order_relaxed);
}

void stats_count(enum counter which, bool good) {
  if (stats_on()) {
    add(good ? &counts.good[which] : &counts.bad[which], 1);
  }
}

// The first bucket is of less than 4 KiB, the next of less than 8, and so on.
static int bucket_of(uint64_t bytes) {
  int bucket = 0;
  for (uint64_t limit = 4 * KIB; bytes >= limit && bucket < BUCKETS - 1; limit *= 2) {
    bucket++;
  }
  return bucket;
}

static void count_gpu(gpu_traffic *g, ssize_t result, uint64_t took, bool unaligned, bool ours) {
  add(&g->total, 1);
  add(ours ? &g->ours : &g->through_host, 1);
  add(&g->unaligned, unaligned);
  add(&g->microseconds, took);
  if (result < 0) {
    add(&g->failed, 1);
  } else {
    add(&g->bytes, (uint64_t)result);
  }
}

void stats_transfer(bool write, ssize_t result, uint64_t started, int gpu, bool unaligned, bool ours) {
  const uint64_t took = started == 0 ? 0 : clock_now() - started;
  traffic *t = &counts.by[write];
  stats_count(write ? COUNT_WRITE : COUNT_READ, result >= 0);
  if (result >= 0) {
    add(&t->bytes, (uint64_t)result);
    add(&t->microseconds, took);
    add(&t->sizes[bucket_of((uint64_t)result)], 1);
  }
  if (gpu >= 0 && gpu < MOST_GPUS) {
    count_gpu(&counts.gpus[gpu].by[write], result, took, unaligned, ours);
  }
}

void stats_batch(bool write, size_t bytes, uint64_t microseconds) {
  if (stats_on()) {
    add(&counts.by[write].batch_bytes, bytes);
    add(&counts.by[write].batch_microseconds, microseconds);
    atomic_store(&counts.by[write].last_batch_bytes, bytes);
  }
}

void stats_buffer(int gpu, size_t bytes, bool registered, bool good) {
  if (!stats_on() || gpu < 0 || gpu >= MOST_GPUS) {
    return;
  }
  gpu_counts *g = &counts.gpus[gpu];
  if (!registered) {
    add(&g->unmaps, 1);
    return;
  }
  add(&g->maps, 1);
  add(good ? &g->maps_good : &g->maps_bad, 1);
  add(&g->mapped_bytes, good ? bytes : 0);
}

// ---- cuFile's functions

CUfileError_t cuFileSetStatsLevel(int wanted) {
  if (wanted < 0 || wanted > 3) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  atomic_store(&level, wanted);
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetStatsLevel(int *now) {
  if (now == NULL) {
    return status_of(CU_FILE_INVALID_VALUE);
  }
  *now = atomic_load(&level);
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsStart(void) {
  if (!library_is_open()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  if (atomic_load(&level) == 0) {
    return status_of(CU_FILE_INTERNAL_ERROR);
  }
  if (!atomic_load(&on)) {
    reset();
    atomic_store(&on, true);
  }
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsStop(void) {
  if (!library_is_open()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  atomic_store(&on, false);
  return status_of(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsReset(void) {
  if (!library_is_open()) {
    return status_of(CU_FILE_DRIVER_NOT_INITIALIZED);
  }
  reset();
  return status_of(CU_FILE_SUCCESS);
}

static uint64_t rate(uint64_t amount, uint64_t microseconds) {
  return microseconds == 0 ? 0 : (uint64_t)((double)amount * 1e6 / (double)microseconds);
}

static uint64_t average(uint64_t sum, uint64_t of) {
  return of == 0 ? 0 : sum / of;
}

static CUfileOpCounter_t counter(enum counter which) {
  return (CUfileOpCounter_t){.ok = get(&counts.good[which]), .err = get(&counts.bad[which])};
}

static void fill_basic(CUfileStatsLevel1_t *s) {
  const traffic *r = &counts.by[false], *w = &counts.by[true];
  const uint64_t elapsed = clock_now() - get(&since);
  memset(s, 0, sizeof *s);
  s->read_ops = counter(COUNT_READ);
  s->write_ops = counter(COUNT_WRITE);
  s->hdl_register_ops = counter(COUNT_HANDLE_REGISTER);
  s->hdl_deregister_ops = counter(COUNT_HANDLE_DEREGISTER);
  s->buf_register_ops = counter(COUNT_BUFFER_REGISTER);
  s->buf_deregister_ops = counter(COUNT_BUFFER_DEREGISTER);
  s->read_bytes = get(&r->bytes);
  s->write_bytes = get(&w->bytes);
  s->read_bw_bytes_per_sec = rate(s->read_bytes, elapsed);
  s->write_bw_bytes_per_sec = rate(s->write_bytes, elapsed);
  s->read_lat_sum_us = get(&r->microseconds);
  s->write_lat_sum_us = get(&w->microseconds);
  s->read_lat_avg_us = average(s->read_lat_sum_us, s->read_ops.ok);
  s->write_lat_avg_us = average(s->write_lat_sum_us, s->write_ops.ok);
  s->read_ops_per_sec = rate(s->read_ops.ok, elapsed);
  s->write_ops_per_sec = rate(s->write_ops.ok, elapsed);
  s->batch_submit_ops = counter(COUNT_BATCH_SUBMIT);
  s->batch_complete_ops = counter(COUNT_BATCH_COMPLETE);
  s->batch_setup_ops = counter(COUNT_BATCH_SETUP);
  s->batch_cancel_ops = counter(COUNT_BATCH_CANCEL);
  s->batch_destroy_ops = counter(COUNT_BATCH_DESTROY);
  s->batch_enqueued_ops = counter(COUNT_BATCH_ENQUEUED);
  s->batch_processed_ops = counter(COUNT_BATCH_PROCESSED);
  s->batch_posix_enqueued_ops = counter(COUNT_BATCH_POSIX_ENQUEUED);
  s->batch_posix_processed_ops = counter(COUNT_BATCH_POSIX_PROCESSED);
  // Requests, where batch_submit_ops has calls.
  s->batch_total_submit_ops.ok = s->batch_enqueued_ops.ok + s->batch_posix_enqueued_ops.ok;
  s->batch_read_bytes = get(&r->batch_bytes);
  s->batch_write_bytes = get(&w->batch_bytes);
  s->batch_read_bw_bytes = rate(s->batch_read_bytes, elapsed);
  s->batch_write_bw_bytes = rate(s->batch_write_bytes, elapsed);
  s->batch_completion_lat_sum_us = get(&r->batch_microseconds) + get(&w->batch_microseconds);
  s->batch_completion_lat_avg_us = average(s->batch_completion_lat_sum_us, s->batch_processed_ops.ok + s->batch_posix_processed_ops.ok);
  s->batch_submit_ops_per_sec = rate(s->batch_submit_ops.ok, elapsed);
  s->batch_complete_ops_per_sec = rate(s->batch_complete_ops.ok, elapsed);
  s->last_batch_read_bytes = get(&r->last_batch_bytes);
  s->last_batch_write_bytes = get(&w->last_batch_bytes);
}

static void fill_detailed(CUfileStatsLevel2_t *s) {
  fill_basic(&s->basic);
  for (int i = 0; i < BUCKETS; i++) {
    s->read_size_kb_hist[i] = get(&counts.by[false].sizes[i]);
    s->write_size_kb_hist[i] = get(&counts.by[true].sizes[i]);
  }
}

static void fill_gpu(CUfilePerGpuStats_t *s, int gpu) {
  const gpu_counts *g = &counts.gpus[gpu];
  const gpu_traffic *r = &g->by[false], *w = &g->by[true];
  const uint64_t elapsed = clock_now() - get(&since);
  memset(s, 0, sizeof *s);
  cuda_uuid(gpu, s->uuid);
  s->read_bytes = get(&r->bytes);
  s->read_bw_bytes_per_sec = rate(s->read_bytes, elapsed);
  s->read_duration_us = get(&r->microseconds);
  s->read_utilization = average(100 * s->read_duration_us, elapsed);
  s->n_total_reads = get(&r->total);
  s->n_p2p_reads = get(&r->ours);
  s->n_posix_reads = get(&r->through_host);
  s->n_unaligned_reads = get(&r->unaligned);
  s->n_reads_err = get(&r->failed);
  s->writes_bytes = get(&w->bytes);
  s->write_bw_bytes_per_sec = rate(s->writes_bytes, elapsed);
  s->write_duration_us = get(&w->microseconds);
  s->write_utilization = average(100 * s->write_duration_us, elapsed);
  s->n_total_writes = get(&w->total);
  s->n_p2p_writes = get(&w->ours);
  s->n_posix_writes = get(&w->through_host);
  s->n_unaligned_writes = get(&w->unaligned);
  s->n_writes_err = get(&w->failed);
  s->n_mmap = get(&g->maps);
  s->n_mmap_ok = get(&g->maps_good);
  s->n_mmap_err = get(&g->maps_bad);
  s->n_mmap_free = get(&g->unmaps);
  s->reg_bytes = get(&g->mapped_bytes);
}

// Whether statistics of this level can be told.
static CUfileOpError may_tell(const void *to, int least) {
  if (!library_is_open()) {
    return CU_FILE_DRIVER_NOT_INITIALIZED;
  }
  return to == NULL || !stats_on() || atomic_load(&level) < least ? CU_FILE_INVALID_VALUE : CU_FILE_SUCCESS;
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats) {
  CUfileOpError code = may_tell(stats, 1);
  if (code == CU_FILE_SUCCESS) {
    fill_basic(stats);
  }
  return status_of(code);
}

CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats) {
  CUfileOpError code = may_tell(stats, 2);
  if (code == CU_FILE_SUCCESS) {
    fill_detailed(stats);
  }
  return status_of(code);
}

CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats) {
  CUfileOpError code = may_tell(stats, 3);
  if (code != CU_FILE_SUCCESS) {
    return status_of(code);
  }
  fill_detailed(&stats->detailed);
  const int gpus = cuda_gpus();
  stats->num_gpus = (uint32_t)(gpus < MOST_GPUS ? gpus : MOST_GPUS);
  for (int i = 0; i < MOST_GPUS; i++) {
    memset(&stats->per_gpu_stats[i], 0, sizeof stats->per_gpu_stats[i]);
    if (i < (int)stats->num_gpus) {
      fill_gpu(&stats->per_gpu_stats[i], i);
    }
  }
  return status_of(CU_FILE_SUCCESS);
}
