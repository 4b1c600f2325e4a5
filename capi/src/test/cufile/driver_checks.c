// Opening and closing the driver, its properties and their setters.
#include "suite.h"

static void open_close(void) {
  is_number("use-count-before", cufile.UseCount(), 0);
  open_driver();
  is_number("use-count-open", cufile.UseCount(), 1);
  SUCCEEDS("close", cufile.DriverClose());
  is_number("use-count-closed", cufile.UseCount(), 0);
  SUCCEEDS("open-again", cufile.DriverOpen());
  is_number("use-count-open-again", cufile.UseCount(), 1);
  SUCCEEDS("close-again", cufile.DriverClose());
}

static void open_twice(void) {
  SUCCEEDS("first", cufile.DriverOpen());
  observe("second", error_text(cufile.DriverOpen()));
  observe("use-count-after-two", text("%ld", cufile.UseCount()));
  observe("close-one", error_text(cufile.DriverClose()));
  observe("use-count-after-one-close", text("%ld", cufile.UseCount()));
  observe("close-two", error_text(cufile.DriverClose()));
  observe("use-count-after-two-closes", text("%ld", cufile.UseCount()));
  observe("close-three", error_text(cufile.DriverClose()));
}

static void close_unopened(void) {
  observe("close", error_text(cufile.DriverClose()));
  is_number("use-count", cufile.UseCount(), 0);
  SUCCEEDS("opens-after-it", cufile.DriverOpen());
}

static void implicit_by_handle(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  is_true("opens", cufile.UseCount() > 0, "a use count above 0", text("%ld", cufile.UseCount()));
  CUfileDrvProps_t properties = {0};
  SUCCEEDS("properties", cufile.DriverGetProperties(&properties));
  cufile.HandleDeregister(handle);
  observe("use-count-after-deregister", text("%ld", cufile.UseCount()));
}

static void implicit_by_buffer(void) {
  void *buffer = allocate(65536);
  SUCCEEDS("register", cufile.BufRegister(buffer, 65536, 0));
  is_true("opens", cufile.UseCount() > 0, "a use count above 0", text("%ld", cufile.UseCount()));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
}

static void implicit_then_open(void) {
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  observe("open", error_text(cufile.DriverOpen()));
  observe("use-count", text("%ld", cufile.UseCount()));
  cufile.HandleDeregister(handle);
  observe("close", error_text(cufile.DriverClose()));
}

static void closed_with_handle(void) {
  open_driver();
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  observe("close", error_text(cufile.DriverClose()));
  observe("use-count", text("%ld", cufile.UseCount()));
  void *buffer = allocate(4096);
  observe_transferred("read-after-close", TRANSFER(cufile.Read(handle, buffer, 4096, 0, 0)));
}

static void properties(void) {
  CUfileDrvProps_t p = {0};
  memset(&p, 0xA5, sizeof p);
  observe("closed", error_text(cufile.DriverGetProperties(&p)));
  open_driver();
  is_error("null", cufile.DriverGetProperties(NULL), CU_FILE_INVALID_VALUE);
  SUCCEEDS("get", cufile.DriverGetProperties(&p));
  is_number("max-direct-io-size", (long long)p.nvfs.max_direct_io_size, 16384);
  is_number("max-device-cache-size", p.max_device_cache_size, 131072);
  observe("per-buffer-cache-size", text("%u", p.per_buffer_cache_size));
  is_number("max-device-pinned-mem-size", p.max_device_pinned_mem_size, 33554432);
  is_number("max-batch-io-size", p.max_batch_io_size, 128);
  is_number("poll-thresh-size", (long long)p.nvfs.poll_thresh_size, 4);
  observe("max-batch-io-timeout", text("%u", p.max_batch_io_timeout_msecs));
  is_number("poll-mode-off", p.nvfs.dcontrolflags >> CU_FILE_USE_POLL_MODE & 1, 0);
  is_number("compat-mode-allowed", p.nvfs.dcontrolflags >> CU_FILE_ALLOW_COMPAT_MODE & 1, 1);
  observe("nvfs-version", text("%u.%u", p.nvfs.major_version, p.nvfs.minor_version));
  observe("dstatusflags", text("%#x", p.nvfs.dstatusflags));
  observe("fflags", text("%#x", p.fflags));
}

// Whether properties tell what a setter changed while the driver was open is left open: NVIDIA's library without nvidia-fs goes on
// to tell what it was opened with.
static void poll_mode(void) {
  CUfileDrvProps_t p = {0};
  observe("closed", error_text(cufile.DriverSetPollMode(true, 8)));
  open_driver();
  SUCCEEDS("on", cufile.DriverSetPollMode(true, 8));
  SUCCEEDS("get", cufile.DriverGetProperties(&p));
  observe("flag", text("%u", p.nvfs.dcontrolflags >> CU_FILE_USE_POLL_MODE & 1));
  observe("threshold", text("%zu", p.nvfs.poll_thresh_size));
  SUCCEEDS("off", cufile.DriverSetPollMode(false, 4));
  cufile.DriverGetProperties(&p);
  is_number("flag-off", p.nvfs.dcontrolflags >> CU_FILE_USE_POLL_MODE & 1, 0);
  observe("unaligned", error_text(cufile.DriverSetPollMode(true, 5)));
  observe("zero", error_text(cufile.DriverSetPollMode(true, 0)));
  observe("huge", error_text(cufile.DriverSetPollMode(true, (size_t)1 << 40)));
}

static void max_direct_io(void) {
  CUfileDrvProps_t p = {0};
  observe("closed", error_text(cufile.DriverSetMaxDirectIOSize(1024)));
  open_driver();
  SUCCEEDS("1024", cufile.DriverSetMaxDirectIOSize(1024));
  cufile.DriverGetProperties(&p);
  observe("is-set", text("%zu", p.nvfs.max_direct_io_size));
  observe("zero", error_text(cufile.DriverSetMaxDirectIOSize(0)));
  observe("not-64-kib", error_text(cufile.DriverSetMaxDirectIOSize(100)));
  observe("huge", error_text(cufile.DriverSetMaxDirectIOSize((size_t)1 << 40)));
  cufile.DriverGetProperties(&p);
  observe("after-bad-ones", text("%zu", p.nvfs.max_direct_io_size));
}

static void max_cache(void) {
  CUfileDrvProps_t p = {0};
  observe("closed", error_text(cufile.DriverSetMaxCacheSize(65536)));
  open_driver();
  SUCCEEDS("65536", cufile.DriverSetMaxCacheSize(65536));
  cufile.DriverGetProperties(&p);
  observe("is-set", text("%u", p.max_device_cache_size));
  observe("zero", error_text(cufile.DriverSetMaxCacheSize(0)));
  observe("unaligned", error_text(cufile.DriverSetMaxCacheSize(1025)));
  observe("huge", error_text(cufile.DriverSetMaxCacheSize((size_t)1 << 50)));
}

static void max_pinned(void) {
  CUfileDrvProps_t p = {0};
  observe("closed", error_text(cufile.DriverSetMaxPinnedMemSize(1 << 20)));
  open_driver();
  SUCCEEDS("1-gib", cufile.DriverSetMaxPinnedMemSize(1 << 20));
  cufile.DriverGetProperties(&p);
  observe("is-set", text("%u", p.max_device_pinned_mem_size));
  observe("zero", error_text(cufile.DriverSetMaxPinnedMemSize(0)));
  observe("unaligned", error_text(cufile.DriverSetMaxPinnedMemSize(1025)));
  observe("huge", error_text(cufile.DriverSetMaxPinnedMemSize((size_t)1 << 50)));
}

static void pinned_limit(void) {
  open_driver();
  SUCCEEDS("1-mib", cufile.DriverSetMaxPinnedMemSize(1024));
  void *buffer = allocate(4 * MIB);
  observe("register-more", error_text(cufile.BufRegister(buffer, 4 * MIB, 0)));
}

static void use_count_of_parts(void) {
  open_driver();
  CUfileHandle_t handle = handle_of(new_file("file", O_RDWR, 1, 4096));
  observe("with-a-handle", text("%ld", cufile.UseCount()));
  void *buffer = allocate(65536);
  SUCCEEDS("register", cufile.BufRegister(buffer, 65536, 0));
  observe("with-a-buffer", text("%ld", cufile.UseCount()));
  SUCCEEDS("deregister", cufile.BufDeregister(buffer));
  cufile.HandleDeregister(handle);
  observe("without", text("%ld", cufile.UseCount()));
  SUCCEEDS("close", cufile.DriverClose());
  is_number("closed", cufile.UseCount(), 0);
}

static void open_many(void) {
  int failed = 0;
  for (int i = 0; i < 20; i++) {
    failed += cufile.DriverOpen().err != CU_FILE_SUCCESS;
    failed += cufile.DriverClose().err != CU_FILE_SUCCESS;
  }
  is_number("20-times", failed, 0);
  is_number("use-count", cufile.UseCount(), 0);
}

const struct group driver_groups[] = {
    {"driver.open", "open, close and the use count", open_close, 0, NULL},
    {"driver.open-twice", "a second open, and as many closes", open_twice, 0, NULL},
    {"driver.close-unopened", "close before open", close_unopened, 0, NULL},
    {"driver.implicit-handle", "a handle's registration opens", implicit_by_handle, 0, NULL},
    {"driver.implicit-buffer", "a buffer's registration opens", implicit_by_buffer, USES_MEMORY, NULL},
    {"driver.implicit-open", "open after a registration opened", implicit_then_open, 0, NULL},
    {"driver.closed-with-handle", "close while a handle is registered, and its use after it", closed_with_handle, MAY_CRASH, NULL},
    {"driver.use-count", "what counts", use_count_of_parts, USES_MEMORY, NULL},
    {"driver.open-many", "open and close 20 times", open_many, 0, NULL},
    {"driver.properties", "defaults", properties, 0, NULL},
    {"driver.poll-mode", "cuFileDriverSetPollMode", poll_mode, 0, NULL},
    {"driver.max-direct-io", "cuFileDriverSetMaxDirectIOSize", max_direct_io, 0, NULL},
    {"driver.max-cache", "cuFileDriverSetMaxCacheSize", max_cache, 0, NULL},
    {"driver.max-pinned", "cuFileDriverSetMaxPinnedMemSize", max_pinned, 0, NULL},
    {"driver.pinned-limit", "a registration above the limit", pinned_limit, USES_MEMORY, NULL},
    {0},
};
