package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.storage.StorageAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** One device counted in logical blocks: {@code nvme_gpu}. Safe for all threads. */
final class BlockGpu implements AutoCloseable {
  /** Set to 1 by who has decided that writes to a device are meant. */
  static final String ALLOW_WRITE = "GPUNVME_ALLOW_WRITE";

  private final Storage storage;
  private final int blockSize;

  /** Started and not waited for; guarded by this. */
  private List<Request> requests = new ArrayList<>();

  /** Of one that was dropped when it was over; guarded by this. */
  private @Nullable Throwable failure;

  private BlockGpu(Storage storage) {
    this.storage = storage;
    blockSize = storage.storage().blockSize();
  }

  static BlockGpu open(String device, Memory memory, Map<String, String> environment) {
    boolean write = mayWrite(StorageAddress.parse(device), environment);
    return new BlockGpu(Storage.open(device, memory, write));
  }

  /** What is gone with the process is its own; all else is only written if somebody says so. */
  private static boolean mayWrite(StorageAddress address, Map<String, String> environment) {
    DeviceAddress device = address.device();
    return device != null && device.forgets() || "1".equals(environment.get(ALLOW_WRITE));
  }

  Storage storage() {
    return storage;
  }

  int blockSize() {
    return blockSize;
  }

  private Storage.Item item(long lba, long blocks, long address) {
    if (lba < 0 || blocks < 0 || lba > Long.MAX_VALUE / blockSize - blocks) {
      throw new InvalidRequestException(
          "%s blocks at LBA %s end at byte 2^63 or later"
              .formatted(Long.toUnsignedString(blocks), Long.toUnsignedString(lba)));
    }
    return new Storage.Item(lba * blockSize, address, blocks * blockSize);
  }

  void transfer(boolean write, long lba, long blocks, long address) throws Throwable {
    storage.transfer(write, List.of(item(lba, blocks, address)), null);
  }

  /**
   * Starts a transfer.
   *
   * @param stream 0: of no stream
   */
  void start(boolean write, long lba, long blocks, long address, long stream) {
    Storage.Item item = item(lba, blocks, address);
    Request request =
        stream == 0 ? storage.submit(write, List.of(item)) : storage.submit(write, item, stream);
    synchronized (this) {
      // Whoever waits for his streams only never asks for them.
      requests.removeIf(this::isOver);
      requests.add(request);
    }
  }

  private boolean isOver(Request request) {
    if (!request.isOver()) {
      return false;
    }
    failure = failure == null ? request.failure() : failure;
    return true;
  }

  private synchronized List<Request> takeRequests() {
    List<Request> all = requests;
    requests = new ArrayList<>();
    return all;
  }

  private synchronized @Nullable Throwable takeFailure() {
    Throwable first = failure;
    failure = null;
    return first;
  }

  /**
   * Waits for what was started.
   *
   * @throws Throwable the first failure
   */
  void synchronize() throws Throwable {
    Throwable first = null;
    for (Request request : takeRequests()) {
      request.awaitOver();
      first = first == null ? request.failure() : first;
    }
    Throwable earlier = takeFailure();
    if (earlier != null || first != null) {
      throw earlier != null ? earlier : first;
    }
  }

  @Override
  public void close() throws Exception {
    takeRequests().forEach(Request::close);
    storage.close();
  }
}
