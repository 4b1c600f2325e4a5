// Statistics: levels, start, stop and reset, and what they count.
#include "suite.h"

static void levels(void) {
  int level = -1;
  observe("closed-get", error_text(cufile.GetStatsLevel(&level)));
  observe("closed-level", text("%d", level));
  observe("closed-set", error_text(cufile.SetStatsLevel(1)));
  open_driver();
  for (int i = 0; i <= 3; i++) {
    SUCCEEDS(text("set-%d", i), cufile.SetStatsLevel(i));
    SUCCEEDS(text("get-%d", i), cufile.GetStatsLevel(&level));
    is_number(text("level-%d", i), level, i);
  }
  is_error("set-4", cufile.SetStatsLevel(4), CU_FILE_INVALID_VALUE);
  is_error("set-minus-1", cufile.SetStatsLevel(-1), CU_FILE_INVALID_VALUE);
  SUCCEEDS("get-after-bad", cufile.GetStatsLevel(&level));
  is_number("level-after-bad", level, 3);
  is_error("null", cufile.GetStatsLevel(NULL), CU_FILE_INVALID_VALUE);
}

static void closed(void) {
  static CUfileStatsLevel3_t stats;
  is_error("start", cufile.StatsStart(), CU_FILE_DRIVER_NOT_INITIALIZED);
  is_error("stop", cufile.StatsStop(), CU_FILE_DRIVER_NOT_INITIALIZED);
  is_error("reset", cufile.StatsReset(), CU_FILE_DRIVER_NOT_INITIALIZED);
  is_error("l1", cufile.GetStatsL1(&stats.detailed.basic), CU_FILE_DRIVER_NOT_INITIALIZED);
  is_error("l2", cufile.GetStatsL2(&stats.detailed), CU_FILE_DRIVER_NOT_INITIALIZED);
  is_error("l3", cufile.GetStatsL3(&stats), CU_FILE_DRIVER_NOT_INITIALIZED);
}

static void arguments(void) {
  static CUfileStatsLevel3_t stats;
  open_driver();
  SUCCEEDS("level-0", cufile.SetStatsLevel(0));
  observe("start-at-level-0", error_text(cufile.StatsStart()));
  observe("l1-at-level-0", error_text(cufile.GetStatsL1(&stats.detailed.basic)));
  SUCCEEDS("level-1", cufile.SetStatsLevel(1));
  SUCCEEDS("start", cufile.StatsStart());
  is_error("l1-null", cufile.GetStatsL1(NULL), CU_FILE_INVALID_VALUE);
  SUCCEEDS("l1", cufile.GetStatsL1(&stats.detailed.basic));
  observe("l2-at-level-1", error_text(cufile.GetStatsL2(&stats.detailed)));
  observe("l3-at-level-1", error_text(cufile.GetStatsL3(&stats)));
  SUCCEEDS("level-2", cufile.SetStatsLevel(2));
  is_error("l2-null", cufile.GetStatsL2(NULL), CU_FILE_INVALID_VALUE);
  SUCCEEDS("l2", cufile.GetStatsL2(&stats.detailed));
  observe("l3-at-level-2", error_text(cufile.GetStatsL3(&stats)));
  SUCCEEDS("level-3", cufile.SetStatsLevel(3));
  is_error("l3-null", cufile.GetStatsL3(NULL), CU_FILE_INVALID_VALUE);
  SUCCEEDS("l3", cufile.GetStatsL3(&stats));
  observe("start-twice", error_text(cufile.StatsStart()));
  SUCCEEDS("stop", cufile.StatsStop());
  observe("stop-twice", error_text(cufile.StatsStop()));
  SUCCEEDS("reset", cufile.StatsReset());
}

static void counts(void) {
  CUfileStatsLevel1_t s;
  memset(&s, 0, sizeof s);
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(1));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t first = handle_of(new_file("first", O_RDWR, 1, 65536)), second = handle_of(new_file("second", O_RDWR, 1, 65536)), third = NULL;
  observe("bad-handle", error_text(register_fd(&third, -1)));
  char *buffer = allocate(65536);
  SUCCEEDS("register", cufile.BufRegister(buffer, 65536, 0));
  for (int i = 0; i < 5; i++) {
    is_transferred(text("read-%d", i), TRANSFER(cufile.Read(first, buffer, 8192, 0, 0)), 8192);
  }
  for (int i = 0; i < 3; i++) {
    is_transferred(text("write-%d", i), TRANSFER(cufile.Write(second, buffer, 4096, 0, 0)), 4096);
  }
  cufile.HandleDeregister(second);
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
  SUCCEEDS("get", cufile.GetStatsL1(&s));
  is_number("reads", (long long)s.read_ops.ok, 5);
  is_number("writes", (long long)s.write_ops.ok, 3);
  is_number("read-bytes", (long long)s.read_bytes, 5 * 8192);
  is_number("write-bytes", (long long)s.write_bytes, 3 * 4096);
  is_number("handles", (long long)s.hdl_register_ops.ok, 2);
  observe("handles-err", text("%llu", (unsigned long long)s.hdl_register_ops.err));
  is_number("handles-deregistered", (long long)s.hdl_deregister_ops.ok, 1);
  is_number("buffers", (long long)s.buf_register_ops.ok, 1);
  is_number("buffers-deregistered", (long long)s.buf_deregister_ops.ok, 1);
  is_number("read-errors", (long long)s.read_ops.err, 0);
  is_number("batches", (long long)s.batch_setup_ops.ok, 0);
  observe("latency-sum", s.read_lat_sum_us > 0 ? "more than 0" : "0");
  SUCCEEDS("reset", cufile.StatsReset());
  SUCCEEDS("get-after-reset", cufile.GetStatsL1(&s));
  is_number("reads-after-reset", (long long)s.read_ops.ok, 0);
  is_number("read-bytes-after-reset", (long long)s.read_bytes, 0);
  SUCCEEDS("stop", cufile.StatsStop());
  cufile.Read(first, buffer, 8192, 0, 0);
  CUfileError_t error = cufile.GetStatsL1(&s);
  observe("get-after-stop", error_text(error));
  observe("reads-after-stop", text("%llu", (unsigned long long)s.read_ops.ok));
  error = cufile.StatsStart();
  observe("start-again", error_text(error));
  is_transferred("read-again", TRANSFER(cufile.Read(first, buffer, 8192, 0, 0)), 8192);
  error = cufile.GetStatsL1(&s);
  observe("reads-again", text("%s, %llu", error_text(error), (unsigned long long)s.read_ops.ok));
}

static void errors_count(void) {
  CUfileStatsLevel1_t s;
  memset(&s, 0, sizeof s);
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(1));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t handle = handle_of(new_file("file", O_RDONLY, 1, 65536));
  void *buffer = allocate(65536);
  is_refused("write", TRANSFER(cufile.Write(handle, buffer, 4096, 0, 0)));
  cufile.BufDeregister(buffer);
  SUCCEEDS("get", cufile.GetStatsL1(&s));
  observe("write-errors", text("%llu", (unsigned long long)s.write_ops.err));
  observe("buffer-errors", text("%llu", (unsigned long long)s.buf_deregister_ops.err));
  is_number("writes", (long long)s.write_ops.ok, 0);
  is_number("write-bytes", (long long)s.write_bytes, 0);
}

static void batches(void) {
  CUfileStatsLevel1_t s;
  memset(&s, 0, sizeof s);
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(1));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4 * 65536));
  char *buffer = allocate(4 * 65536);
  CUfileIOParams_t params[4];
  CUfileIOEvents_t events[4];
  memset(params, 0, sizeof params);
  for (int i = 0; i < 4; i++) {
    params[i].mode = CUFILE_BATCH;
    params[i].u.batch.devPtr_base = buffer;
    params[i].u.batch.devPtr_offset = params[i].u.batch.file_offset = i * 65536L;
    params[i].u.batch.size = 65536;
    params[i].fh = handle;
    params[i].opcode = CUFILE_READ;
  }
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 4));
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 4, params, 0));
  unsigned n = 4;
  SUCCEEDS("status", cufile.BatchIOGetStatus(batch, 4, &n, events, NULL));
  cufile.BatchIODestroy(batch);
  SUCCEEDS("get", cufile.GetStatsL1(&s));
  is_number("set-ups", (long long)s.batch_setup_ops.ok, 1);
  is_number("destroys", (long long)s.batch_destroy_ops.ok, 1);
  is_number("cancels", (long long)s.batch_cancel_ops.ok, 0);
  observe("submits", text("%llu", (unsigned long long)s.batch_submit_ops.ok));
  observe("completes", text("%llu", (unsigned long long)s.batch_complete_ops.ok));
  observe("total-submits", text("%llu", (unsigned long long)s.batch_total_submit_ops.ok));
  observe("enqueued", text("%llu", (unsigned long long)s.batch_enqueued_ops.ok));
  observe("posix-enqueued", text("%llu", (unsigned long long)s.batch_posix_enqueued_ops.ok));
  is_number("read-bytes", (long long)s.batch_read_bytes, 4 * 65536);
  is_number("write-bytes", (long long)s.batch_write_bytes, 0);
}

static void streams(void) {
  CUfileStatsLevel1_t s;
  memset(&s, 0, sizeof s);
  void *stream = NULL;
  if (cuda.StreamCreateWithPriority == NULL || cuda.StreamCreateWithPriority(&stream, 1, 0) != 0) {
    give_up("no stream can be made");
  }
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(1));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 65536));
  char *buffer = allocate(65536);
  size_t size = 8192;
  off_t file = 0, at = 0;
  ssize_t done = -77;
  for (int i = 0; i < 3; i++) {
    SUCCEEDS(text("read-%d", i), cufile.ReadAsync(handle, buffer, &size, &file, &at, &done, (CUstream)stream));
    cuda.StreamSynchronize(stream);
    is_number(text("bytes-%d", i), done, 8192);
  }
  SUCCEEDS("write", cufile.WriteAsync(handle, buffer, &size, &file, &at, &done, (CUstream)stream));
  cuda.StreamSynchronize(stream);
  SUCCEEDS("get", cufile.GetStatsL1(&s));
  observe("reads", text("%llu, %llu bytes", (unsigned long long)s.read_ops.ok, (unsigned long long)s.read_bytes));
  observe("writes", text("%llu, %llu bytes", (unsigned long long)s.write_ops.ok, (unsigned long long)s.write_bytes));
}

static void histograms(void) {
  static CUfileStatsLevel2_t s;
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(2));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 2 * MIB));
  char *buffer = allocate(2 * MIB);
  static const size_t sizes[] = {4096, 4096, 65536, MIB};
  for (size_t i = 0; i < 4; i++) {
    is_transferred(text("read-%zu", i), TRANSFER(cufile.Read(handle, buffer, sizes[i], 0, 0)), (ssize_t)sizes[i]);
  }
  is_transferred("write", TRANSFER(cufile.Write(handle, buffer, 8192, 0, 0)), 8192);
  SUCCEEDS("get", cufile.GetStatsL2(&s));
  unsigned long long sum_read = 0, sum_written = 0;
  const char *read_buckets = "", *write_buckets = "";
  for (int i = 0; i < 32; i++) {
    sum_read += s.read_size_kb_hist[i];
    sum_written += s.write_size_kb_hist[i];
    if (s.read_size_kb_hist[i] != 0) {
      read_buckets = text("%s %d:%llu", read_buckets, i, (unsigned long long)s.read_size_kb_hist[i]);
    }
    if (s.write_size_kb_hist[i] != 0) {
      write_buckets = text("%s %d:%llu", write_buckets, i, (unsigned long long)s.write_size_kb_hist[i]);
    }
  }
  is_number("reads", (long long)sum_read, 4);
  is_number("writes", (long long)sum_written, 1);
  observe("read-buckets", read_buckets);
  observe("write-buckets", write_buckets);
  is_number("basic-reads", (long long)s.basic.read_ops.ok, 4);
}

static void per_gpu(void) {
  static CUfileStatsLevel3_t s;
  open_driver();
  SUCCEEDS("level", cufile.SetStatsLevel(3));
  SUCCEEDS("start", cufile.StatsStart());
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 2 * MIB));
  char *buffer = allocate(2 * MIB);
  SUCCEEDS("register", cufile.BufRegister(buffer, 2 * MIB, 0));
  is_transferred("read", TRANSFER(cufile.Read(handle, buffer, MIB, 0, 0)), MIB);
  is_transferred("read-unaligned", TRANSFER(cufile.Read(handle, buffer, 1000, 1, 1)), 1000);
  is_transferred("write", TRANSFER(cufile.Write(handle, buffer, MIB, 0, 0)), MIB);
  SUCCEEDS("get", cufile.GetStatsL3(&s));
  int gpus = 0;
  if (cuda_missing == NULL && cuda.DeviceGetCount != NULL) {
    cuda.DeviceGetCount(&gpus);
    observe("gpus", s.num_gpus == (unsigned)gpus ? "as CUDA says" : text("%u, not %d", s.num_gpus, gpus));
  }
  is_number("basic-reads", (long long)s.detailed.basic.read_ops.ok, 2);
  CUfilePerGpuStats_t *g = &s.per_gpu_stats[0];
  observe("reads", text("total %llu, p2p %llu, nvfs %llu, posix %llu, unaligned %llu, dr %llu, err %llu", (unsigned long long)g->n_total_reads,
                        (unsigned long long)g->n_p2p_reads, (unsigned long long)g->n_nvfs_reads, (unsigned long long)g->n_posix_reads,
                        (unsigned long long)g->n_unaligned_reads, (unsigned long long)g->n_dr_reads, (unsigned long long)g->n_reads_err));
  observe("writes", text("total %llu, p2p %llu, nvfs %llu, posix %llu, unaligned %llu, err %llu", (unsigned long long)g->n_total_writes,
                         (unsigned long long)g->n_p2p_writes, (unsigned long long)g->n_nvfs_writes, (unsigned long long)g->n_posix_writes,
                         (unsigned long long)g->n_unaligned_writes, (unsigned long long)g->n_writes_err));
  observe("bytes", text("%llu read, %llu written", (unsigned long long)g->read_bytes, (unsigned long long)g->writes_bytes));
  observe("registrations", text("%llu, ok %llu, err %llu, free %llu, bytes %llu", (unsigned long long)g->n_mmap, (unsigned long long)g->n_mmap_ok,
                                (unsigned long long)g->n_mmap_err, (unsigned long long)g->n_mmap_free, (unsigned long long)g->reg_bytes));
}

static void level_before(void) { configure("", "\"profile\": {\"cufile_stats\": 2}"); }

static void from_json(void) {
  int level = -1;
  open_driver();
  SUCCEEDS("get", cufile.GetStatsLevel(&level));
  is_number("level", level, 2);
  SUCCEEDS("set", cufile.SetStatsLevel(1));
  SUCCEEDS("get-again", cufile.GetStatsLevel(&level));
  is_number("call-over-json", level, 1);
}

const struct group stats_groups[] = {
    {"stats.levels", "levels 0 to 3", levels, 0, NULL},
    {"stats.closed", "calls while the driver is closed", closed, 0, NULL},
    {"stats.arguments", "null, and levels that are too low", arguments, 0, NULL},
    {"stats.counts", "level 1 is what was done", counts, USES_MEMORY, NULL},
    {"stats.errors", "level 1 after errors", errors_count, USES_MEMORY, NULL},
    {"stats.batches", "level 1 of a batch", batches, USES_MEMORY, NULL},
    {"stats.streams", "level 1 of calls on a stream", streams, USES_MEMORY | USES_CUDA, cufile_threads},
    {"stats.histograms", "level 2", histograms, USES_MEMORY, NULL},
    {"stats.per-gpu", "level 3", per_gpu, USES_MEMORY, NULL},
    {"stats.json", "profile.cufile_stats", from_json, 0, level_before},
    {0},
};
