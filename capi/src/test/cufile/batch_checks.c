// Batches: limits, states, cookies, waiting, failures, cancelling.
#include "suite.h"

enum { MOST = 128, ONE = 65536 };

static CUfileIOParams_t params_of(CUfileHandle_t handle, CUfileOpcode_t opcode, void *base, off_t at, off_t file, size_t size, uintptr_t cookie) {
  CUfileIOParams_t p;
  memset(&p, 0, sizeof p);
  p.mode = CUFILE_BATCH;
  p.u.batch.devPtr_base = base;
  p.u.batch.devPtr_offset = at;
  p.u.batch.file_offset = file;
  p.u.batch.size = size;
  p.fh = handle;
  p.opcode = opcode;
  p.cookie = (void *)cookie;
  return p;
}

static const char *status_name(int status) {
  switch (status) {
    case CUFILE_WAITING:
      return "CUFILE_WAITING";
    case CUFILE_PENDING:
      return "CUFILE_PENDING";
    case CUFILE_INVALID:
      return "CUFILE_INVALID";
    case CUFILE_CANCELED:
      return "CUFILE_CANCELED";
    case CUFILE_COMPLETE:
      return "CUFILE_COMPLETE";
    case CUFILE_TIMEOUT:
      return "CUFILE_TIMEOUT";
    case CUFILE_FAILED:
      return "CUFILE_FAILED";
    default:
      return text("status %d", status);
  }
}

static const char *event_text(const CUfileIOEvents_t *event) {
  return text("%s, %s", status_name((int)event->status), (ssize_t)event->ret < 0 ? transferred_text((struct transferred){(ssize_t)event->ret, 0})
                                                                                 : text("%zu", event->ret));
}

// Collects all events of a batch; the number that came within 20 s. Events of cookie i are at place i - 1.
static unsigned collect(CUfileBatchHandle_t batch, unsigned nr, CUfileIOEvents_t *by_cookie) {
  static CUfileIOEvents_t events[MOST];
  unsigned done = 0;
  double until = seconds_now() + 20;
  while (done < nr && seconds_now() < until) {
    unsigned n = nr - done;
    struct timespec timeout = {1, 0};
    memset(events, 0, sizeof events);
    CUfileError_t error = cufile.BatchIOGetStatus(batch, 1, &n, events, &timeout);
    if (error.err != CU_FILE_SUCCESS || n > nr - done) {
      is_true("status-call", false, "CU_FILE_SUCCESS, not more than asked for", text("%s, %u", error_text(error), n));
      return done;
    }
    for (unsigned i = 0; i < n; i++) {
      uintptr_t cookie = (uintptr_t)events[i].cookie;
      if (cookie == 0 || cookie > nr) {
        is_true("cookie-known", false, "a cookie that was given", text("%zu", (size_t)cookie));
        return done;
      }
      by_cookie[cookie - 1] = events[i];
    }
    done += n;
  }
  return done;
}

static void set_up(void) {
  CUfileBatchHandle_t batch = NULL;
  open_driver();
  SUCCEEDS("one", cufile.BatchIOSetUp(&batch, 1));
  is_true("one-handle", batch != NULL, "a handle", batch == NULL ? "null" : "a handle");
  cufile.BatchIODestroy(batch);
  SUCCEEDS("128", cufile.BatchIOSetUp(&batch, 128));
  cufile.BatchIODestroy(batch);
  CUfileError_t error = cufile.BatchIOSetUp(&batch, 0);
  is_true("none-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("none", error_text(error));
  error = cufile.BatchIOSetUp(&batch, 129);
  is_true("129-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("129", error_text(error));
  error = cufile.BatchIOSetUp(&batch, UINT32_MAX);
  is_true("most-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("most", error_text(error));
}

static void set_up_null(void) {
  open_driver();
  observe("null", error_text(cufile.BatchIOSetUp(NULL, 4)));
}

static void set_up_closed(void) {
  CUfileBatchHandle_t batch = NULL;
  CUfileError_t error = cufile.BatchIOSetUp(&batch, 4);
  observe("before-open", error_text(error));
  observe("use-count", text("%ld", cufile.UseCount()));
}

static void limit_before(void) { configure("\"io_batchsize\": 16", ""); }

static void limit(void) {
  CUfileBatchHandle_t batch = NULL;
  open_driver();
  SUCCEEDS("16", cufile.BatchIOSetUp(&batch, 16));
  CUfileError_t error = cufile.BatchIOSetUp(&batch, 17);
  is_true("17-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
}

// A batch of reads, and the data of each.
static void reads(void) {
  static CUfileIOParams_t params[MOST];
  static CUfileIOEvents_t events[MOST];
  for (int registered = 0; registered < 2; registered++) {
    const char *kind = registered ? "registered" : "plain";
    CUfileHandle_t handle = handle_of(new_file(kind, O_RDWR, 1, MOST * ONE));
    char *buffer = allocate(MOST * ONE);
    if (registered) {
      SUCCEEDS("register", cufile.BufRegister(buffer, MOST * ONE, 0));
    }
    static const unsigned counts[] = {1, 4, 32, 128};
    for (size_t c = 0; c < 4; c++) {
      unsigned nr = counts[c];
      CUfileBatchHandle_t batch = NULL;
      SUCCEEDS(text("%s-%u-set-up", kind, nr), cufile.BatchIOSetUp(&batch, nr));
      for (unsigned i = 0; i < nr; i++) {
        unsigned from = (i * 37 + 5) % MOST;
        params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)from * ONE, ONE, i + 1);
      }
      SUCCEEDS(text("%s-%u-submit", kind, nr), cufile.BatchIOSubmit(batch, nr, params, 0));
      memset(events, 0, sizeof events);
      is_number(text("%s-%u-events", kind, nr), collect(batch, nr, events), nr);
      unsigned complete = 0, whole = 0, right = 0;
      const char *wrong = "none";
      for (unsigned i = 0; i < nr; i++) {
        if (events[i].status != CUFILE_COMPLETE && complete == i) {
          wrong = text("number %u of %u: %s", i, nr, events[i].cookie == NULL ? "it was never told" : event_text(&events[i]));
        }
        complete += events[i].status == CUFILE_COMPLETE;
        whole += events[i].ret == ONE;
        right += has_pattern(buffer + i * ONE, 1, (size_t)((i * 37 + 5) % MOST) * ONE, ONE);
      }
      is_number(text("%s-%u-complete", kind, nr), complete, nr);
      observe(text("%s-%u-first-not-complete", kind, nr), wrong);
      is_number(text("%s-%u-bytes", kind, nr), whole, nr);
      is_number(text("%s-%u-data", kind, nr), right, nr);
      cufile.BatchIODestroy(batch);
      fill(buffer, 0, MOST * ONE);
    }
  }
}

static void writes(void) {
  static CUfileIOParams_t params[32];
  static CUfileIOEvents_t events[32];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  char *buffer = allocate(32 * ONE);
  put_pattern(buffer, 2, 0, 32 * ONE);
  SUCCEEDS("register", cufile.BufRegister(buffer, 32 * ONE, 0));
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 32));
  for (unsigned i = 0; i < 32; i++) {
    params[i] = params_of(handle, CUFILE_WRITE, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 32, params, 0));
  is_number("events", collect(batch, 32, events), 32);
  is_number("data", file_has("file", 2, 0, 32 * ONE), 1);
  struct stat status;
  stat("file", &status);
  is_number("size", status.st_size, 32 * ONE);
  cufile.BatchIODestroy(batch);
}

static void mixed(void) {
  CUfileIOParams_t params[8];
  CUfileIOEvents_t events[8];
  memset(events, 0, sizeof events);
  CUfileHandle_t from = handle_of(new_file("from", O_RDWR, 1, 8 * ONE)), to = handle_of(new_file("to", O_RDWR, 2, 8 * ONE));
  char *buffer = allocate(8 * ONE), *other = allocate(4 * ONE);
  put_pattern(other, 3, 0, 4 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 8));
  for (unsigned i = 0; i < 8; i++) {
    params[i] = i % 2 == 0 ? params_of(from, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1)
                           : params_of(to, CUFILE_WRITE, other, (off_t)(i / 2) * ONE, (off_t)(i / 2) * ONE, ONE, i + 1);
  }
  CUfileError_t error = cufile.BatchIOSubmit(batch, 8, params, 0);
  observe("reads-and-writes", error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    is_number("events", collect(batch, 8, events), 8);
    int right = 0;
    for (int i = 0; i < 8; i += 2) {
      right += has_pattern(buffer + i * ONE, 1, (size_t)i * ONE, ONE);
    }
    is_number("reads-right", right, 4);
    is_number("writes-right", file_has("to", 3, 0, 4 * ONE), 1);
  }
  cufile.BatchIODestroy(batch);
}

static void unaligned(void) {
  CUfileIOParams_t params[4];
  CUfileIOEvents_t events[4];
  memset(events, 0, sizeof events);
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 4));
  params[0] = params_of(handle, CUFILE_READ, buffer, 0, 1, 4096, 1);
  params[1] = params_of(handle, CUFILE_READ, buffer, ONE, 4096, 999, 2);
  params[2] = params_of(handle, CUFILE_READ, buffer, 2 * ONE + 7, 8192, 4096, 3);
  params[3] = params_of(handle, CUFILE_READ, buffer, 3 * ONE + 3, 12345, 54321, 4);
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 4, params, 0));
  is_number("events", collect(batch, 4, events), 4);
  static const char *const names[] = {"file-1", "size-999", "buffer-7", "all"};
  for (int i = 0; i < 4; i++) {
    is_number(text("%s-bytes", names[i]), (long long)events[i].ret, (long long)params[i].u.batch.size);
    is_pattern(text("%s-data", names[i]), buffer + params[i].u.batch.devPtr_offset, 1, (size_t)params[i].u.batch.file_offset,
               params[i].u.batch.size);
  }
  cufile.BatchIODestroy(batch);
}

static void the_end(void) {
  CUfileIOParams_t params[3];
  CUfileIOEvents_t events[3];
  memset(events, 0, sizeof events);
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, ONE + 100));
  char *buffer = allocate(4 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 3));
  params[0] = params_of(handle, CUFILE_READ, buffer, 0, 0, 4096, 1);
  params[1] = params_of(handle, CUFILE_READ, buffer, ONE, ONE - 4096, 8192, 2);
  params[2] = params_of(handle, CUFILE_READ, buffer, 2 * ONE, 4 * ONE, 4096, 3);
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 3, params, 0));
  is_number("events", collect(batch, 3, events), 3);
  is_true("inside", events[0].status == CUFILE_COMPLETE && events[0].ret == 4096, "CUFILE_COMPLETE, 4096", event_text(&events[0]));
  observe("straddling", event_text(&events[1]));
  observe("past-the-end", event_text(&events[2]));
  cufile.BatchIODestroy(batch);
}

static void bad_submits(void) {
  CUfileIOParams_t params[8];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 4));
  for (unsigned i = 0; i < 8; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  CUfileError_t error = cufile.BatchIOSubmit(batch, 5, params, 0);
  is_true("more-than-set-up-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("more-than-set-up", error_text(error));
  observe("none", error_text(cufile.BatchIOSubmit(batch, 0, params, 0)));
  error = cufile.BatchIOSubmit(batch, 2, NULL, 0);
  is_true("null-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null", error_text(error));
  error = cufile.BatchIOSubmit(NULL, 2, params, 0);
  is_true("null-batch-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-batch", error_text(error));
  cufile.BatchIODestroy(batch);
}

static void submit_flags(void) {
  CUfileIOParams_t params[1];
  CUfileIOEvents_t events[1];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, ONE));
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 1));
  params[0] = params_of(handle, CUFILE_READ, allocate(ONE), 0, 0, ONE, 1);
  CUfileError_t error = cufile.BatchIOSubmit(batch, 1, params, 1);
  observe("1", error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    collect(batch, 1, events);
  }
}

// One entry of four is bad: either the whole is refused, or its event says so.
static void one_bad(const char *name, CUfileIOParams_t bad, CUfileHandle_t handle, char *buffer) {
  CUfileIOParams_t params[4];
  CUfileIOEvents_t events[4];
  memset(events, 0, sizeof events);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS(text("%s-set-up", name), cufile.BatchIOSetUp(&batch, 4));
  for (unsigned i = 0; i < 4; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  bad.cookie = (void *)(uintptr_t)3;
  params[2] = bad;
  CUfileError_t error = cufile.BatchIOSubmit(batch, 4, params, 0);
  observe(text("%s-submit", name), error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    unsigned n = collect(batch, 4, events);
    observe(text("%s-events", name), text("%u", n));
    observe(text("%s-event", name), event_text(&events[2]));
    observe(text("%s-others", name), text("%s; %s; %s", event_text(&events[0]), event_text(&events[1]), event_text(&events[3])));
  }
  cufile.BatchIODestroy(batch);
}

static void one_null_handle(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("null-handle", params_of(NULL, CUFILE_READ, buffer, 0, 0, ONE, 3), handle, buffer);
}

static void one_null_buffer(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("null-buffer", params_of(handle, CUFILE_READ, NULL, 0, 0, ONE, 3), handle, buffer);
}

static void one_bad_opcode(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("opcode", params_of(handle, (CUfileOpcode_t)7, buffer, 0, 0, ONE, 3), handle, buffer);
}

static void one_zero_size(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("zero-size", params_of(handle, CUFILE_READ, buffer, 0, 0, 0, 3), handle, buffer);
}

static void one_negative(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("negative-offset", params_of(handle, CUFILE_READ, buffer, 0, -4096, ONE, 3), handle, buffer);
}

static void one_read_only(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDONLY, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  one_bad("write-to-read-only", params_of(handle, CUFILE_WRITE, buffer, 0, 0, ONE, 3), handle, buffer);
}

static void one_bad_mode(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileIOParams_t bad = params_of(handle, CUFILE_READ, buffer, 2 * ONE, 2 * ONE, ONE, 3);
  bad.mode = (CUfileBatchMode_t)9;
  one_bad("mode", bad, handle, buffer);
}

static void status_arguments(void) {
  CUfileIOParams_t params[2];
  CUfileIOEvents_t events[4];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 2));
  unsigned n = 2;
  struct timespec none = {0, 0};
  CUfileError_t error = cufile.BatchIOGetStatus(batch, 0, &n, events, &none);
  observe("nothing-submitted", text("%s, %u", error_text(error), n));
  for (unsigned i = 0; i < 2; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 2, params, 0));
  error = cufile.BatchIOGetStatus(batch, 1, NULL, events, &none);
  is_true("null-nr-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-nr", error_text(error));
  n = 2;
  error = cufile.BatchIOGetStatus(batch, 1, &n, NULL, &none);
  is_true("null-events-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-events", error_text(error));
  n = 1;
  observe("min-above-nr", error_text(cufile.BatchIOGetStatus(batch, 2, &n, events, &none)));
  n = 2;
  error = cufile.BatchIOGetStatus(NULL, 1, &n, events, &none);
  is_true("null-batch-refused", error.err != CU_FILE_SUCCESS, "an error", error_text(error));
  observe("null-batch", error_text(error));
  cufile.BatchIODestroy(batch);
}

static void waiting(void) {
  static CUfileIOParams_t params[16];
  static CUfileIOEvents_t events[16];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 16 * ONE));
  char *buffer = allocate(16 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 16));
  for (unsigned i = 0; i < 16; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 16, params, 0));
  unsigned n = 16;
  SUCCEEDS("all-without-a-timeout", cufile.BatchIOGetStatus(batch, 16, &n, events, NULL));
  is_number("all-are-there", n, 16);
  n = 16;
  struct timespec none = {0, 0}, tenth = {0, 100000000};
  CUfileError_t error = cufile.BatchIOGetStatus(batch, 0, &n, events, &none);
  observe("after-the-last", text("%s, %u", error_text(error), n));
  n = 16;
  double began = seconds_now();
  error = cufile.BatchIOGetStatus(batch, 1, &n, events, &tenth);
  observe("after-the-last-with-min-1", text("%s, %u", error_text(error), n));
  is_true("timeout-ends", seconds_now() - began < 5, "back within 5 s", seconds_now() - began < 5 ? "back within 5 s" : "later");
  // Some at a time.
  SUCCEEDS("submit-again", cufile.BatchIOSubmit(batch, 16, params, 0));
  unsigned got = 0, calls = 0;
  uintptr_t seen = 0;
  while (got < 16 && calls++ < 1000) {
    n = 3;
    error = cufile.BatchIOGetStatus(batch, 1, &n, events, NULL);
    if (error.err != CU_FILE_SUCCESS || n > 3) {
      break;
    }
    for (unsigned i = 0; i < n; i++) {
      seen |= (uintptr_t)1 << ((uintptr_t)events[i].cookie & 31);
    }
    got += n;
  }
  is_number("three-at-a-time", got, 16);
  is_number("each-cookie-once", (long long)seen, 0x1FFFE);
  cufile.BatchIODestroy(batch);
}

static void in_parts(void) {
  static CUfileIOParams_t params[16];
  static CUfileIOEvents_t events[16];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 16 * ONE));
  char *buffer = allocate(16 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 16));
  for (unsigned i = 0; i < 16; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("first-half", cufile.BatchIOSubmit(batch, 8, params, 0));
  observe("second-half-under-way", error_text(cufile.BatchIOSubmit(batch, 8, params + 8, 0)));
  unsigned n = 16;
  CUfileError_t error = cufile.BatchIOGetStatus(batch, 8, &n, events, NULL);
  is_true("status", error.err == CU_FILE_SUCCESS && n >= 8, "CU_FILE_SUCCESS, 8 or more", text("%s, %s", error_text(error), n >= 8 ? "8 or more" : "fewer"));
  cufile.BatchIODestroy(batch);
}

static void reuse(void) {
  static CUfileIOParams_t params[8];
  static CUfileIOEvents_t events[8];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 8));
  unsigned all = 0, right = 0;
  for (int round = 0; round < 20; round++) {
    fill(buffer, 0, 8 * ONE);
    for (unsigned i = 0; i < 8; i++) {
      params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
    }
    if (cufile.BatchIOSubmit(batch, 8, params, 0).err != CU_FILE_SUCCESS) {
      break;
    }
    all += collect(batch, 8, events);
    right += has_pattern(buffer, 1, 0, 8 * ONE);
  }
  is_number("20-rounds-events", all, 160);
  is_number("20-rounds-data", right, 20);
  cufile.BatchIODestroy(batch);
}

static void several(void) {
  enum { BATCHES = 4 };
  static CUfileIOParams_t params[BATCHES][8];
  static CUfileIOEvents_t events[8];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffers[BATCHES];
  CUfileBatchHandle_t batches[BATCHES];
  for (int b = 0; b < BATCHES; b++) {
    buffers[b] = allocate(8 * ONE);
    SUCCEEDS(text("set-up-%d", b), cufile.BatchIOSetUp(&batches[b], 8));
    for (unsigned i = 0; i < 8; i++) {
      params[b][i] = params_of(handle, CUFILE_READ, buffers[b], (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
    }
    SUCCEEDS(text("submit-%d", b), cufile.BatchIOSubmit(batches[b], 8, params[b], 0));
  }
  unsigned all = 0, right = 0;
  for (int b = BATCHES - 1; b >= 0; b--) {
    all += collect(batches[b], 8, events);
    right += has_pattern(buffers[b], 1, 0, 8 * ONE);
    cufile.BatchIODestroy(batches[b]);
  }
  is_number("events", all, BATCHES * 8);
  is_number("data", right, BATCHES);
}

static void cancelled(void) {
  static CUfileIOParams_t params[MOST];
  static CUfileIOEvents_t events[MOST];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, MOST * ONE));
  char *buffer = allocate(MOST * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, MOST));
  observe("nothing-submitted", error_text(cufile.BatchIOCancel(batch)));
  for (unsigned i = 0; i < MOST; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, MOST, params, 0));
  SUCCEEDS("cancel", cufile.BatchIOCancel(batch));
  unsigned n = MOST;
  struct timespec second = {1, 0};
  memset(events, 0, sizeof events);
  CUfileError_t error = cufile.BatchIOGetStatus(batch, 0, &n, events, &second);
  observe("status-after-cancel", error_text(error));
  unsigned other = 0;
  for (unsigned i = 0; error.err == CU_FILE_SUCCESS && i < n && i < MOST; i++) {
    other += events[i].status != CUFILE_CANCELED && events[i].status != CUFILE_COMPLETE;
  }
  is_number("neither-cancelled-nor-complete", other, 0);
  cufile.BatchIODestroy(batch);
  observe("null", error_text(cufile.BatchIOCancel(NULL)));
}

static void cancelled_then_used(void) {
  static CUfileIOParams_t params[8];
  static CUfileIOEvents_t events[8];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 8 * ONE));
  char *buffer = allocate(8 * ONE);
  CUfileBatchHandle_t batch = NULL;
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 8));
  for (unsigned i = 0; i < 8; i++) {
    params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
  }
  SUCCEEDS("submit", cufile.BatchIOSubmit(batch, 8, params, 0));
  SUCCEEDS("cancel", cufile.BatchIOCancel(batch));
  CUfileError_t error = cufile.BatchIOSubmit(batch, 8, params, 0);
  observe("submit-after-cancel", error_text(error));
  if (error.err == CU_FILE_SUCCESS) {
    unsigned n = 8;
    struct timespec seconds = {5, 0};
    error = cufile.BatchIOGetStatus(batch, 1, &n, events, &seconds);
    observe("status", text("%s, %s", error_text(error), n > 0 ? "some" : "none"));
  }
  cufile.BatchIODestroy(batch);
}

static void destroyed_under_way(void) {
  static CUfileIOParams_t params[MOST];
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, MOST * ONE));
  char *buffer = allocate(MOST * ONE);
  for (int round = 0; round < 5; round++) {
    CUfileBatchHandle_t batch = NULL;
    SUCCEEDS(text("set-up-%d", round), cufile.BatchIOSetUp(&batch, MOST));
    for (unsigned i = 0; i < MOST; i++) {
      params[i] = params_of(handle, CUFILE_READ, buffer, (off_t)i * ONE, (off_t)i * ONE, ONE, i + 1);
    }
    SUCCEEDS(text("submit-%d", round), cufile.BatchIOSubmit(batch, MOST, params, 0));
    cufile.BatchIODestroy(batch);
  }
  is_transferred("reads-go-on", TRANSFER(cufile.Read(handle, buffer, ONE, 0, 0)), ONE);
}

static void destroyed_null(void) {
  open_driver();
  cufile.BatchIODestroy(NULL);
  observe("lives", "yes");
}

static void used_after_destroy(void) {
  CUfileBatchHandle_t batch = NULL;
  open_driver();
  SUCCEEDS("set-up", cufile.BatchIOSetUp(&batch, 4));
  cufile.BatchIODestroy(batch);
  CUfileIOEvents_t events[4];
  unsigned n = 4;
  struct timespec none = {0, 0};
  observe("status", error_text(cufile.BatchIOGetStatus(batch, 0, &n, events, &none)));
  observe("cancel", error_text(cufile.BatchIOCancel(batch)));
  cufile.BatchIODestroy(batch);
  observe("lives", "yes");
}

static void many_batches(void) {
  CUfileBatchHandle_t batch = NULL;
  int failed = 0;
  open_driver();
  for (int i = 0; i < 30; i++) {
    failed += cufile.BatchIOSetUp(&batch, 64).err != CU_FILE_SUCCESS;
    cufile.BatchIODestroy(batch);
  }
  is_number("30-after-each-other", failed, 0);
}

const struct group batch_groups[] = {
    {"batch.set-up", "limits", set_up, 0, NULL},
    {"batch.set-up-null", "a null pointer", set_up_null, MAY_CRASH, NULL},
    {"batch.set-up-closed", "set up before the driver is open", set_up_closed, MAY_CRASH, NULL},
    {"batch.limit", "properties.io_batchsize", limit, 0, limit_before},
    {"batch.reads", "1 to 128 reads, states, bytes, data", reads, USES_MEMORY, NULL},
    {"batch.writes", "32 writes", writes, USES_MEMORY, NULL},
    {"batch.mixed", "reads and writes of two files in one", mixed, USES_MEMORY, NULL},
    {"batch.unaligned", "unaligned entries", unaligned, USES_MEMORY, NULL},
    {"batch.end", "across and behind the end of the file", the_end, USES_MEMORY, NULL},
    {"batch.bad-submits", "too many, none, null", bad_submits, USES_MEMORY, NULL},
    {"batch.submit-flags", "flags of a submission", submit_flags, USES_MEMORY, NULL},
    {"batch.null-handle", "one entry without a handle", one_null_handle, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.null-buffer", "one entry without memory", one_null_buffer, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.opcode", "one entry with an unknown operation", one_bad_opcode, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.mode", "one entry with an unknown mode", one_bad_mode, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.zero-size", "one entry of no bytes", one_zero_size, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.negative", "one entry before the file", one_negative, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.read-only", "one entry writes to O_RDONLY", one_read_only, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.status-arguments", "arguments of the status call", status_arguments, USES_MEMORY, NULL},
    {"batch.waiting", "min_nr, nr and timeouts", waiting, USES_MEMORY, NULL},
    {"batch.in-parts", "two submissions of one batch", in_parts, USES_MEMORY, NULL},
    {"batch.reuse", "20 submissions after each other", reuse, USES_MEMORY, NULL},
    {"batch.several", "four batches at once", several, USES_MEMORY, NULL},
    {"batch.cancel", "cancelling", cancelled, USES_MEMORY, NULL},
    {"batch.cancel-reuse", "a batch after it was cancelled", cancelled_then_used, USES_MEMORY | MAY_CRASH, NULL},
    {"batch.destroy", "destroyed with work under way", destroyed_under_way, USES_MEMORY, NULL},
    {"batch.destroy-null", "destruction of null", destroyed_null, MAY_CRASH, NULL},
    {"batch.destroyed", "use after destruction", used_after_destroy, MAY_CRASH, NULL},
    {"batch.many", "30 after each other", many_batches, 0, NULL},
    {0},
};
