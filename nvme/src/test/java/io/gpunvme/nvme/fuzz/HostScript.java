package io.gpunvme.nvme.fuzz;

import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.Structure;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.SplittableRandom;

/**
 * What a host does with a controller it cannot trust: everything the driver offers, in random order.
 * Every call must return something sensible or throw an {@link NvmeException}.
 */
final class HostScript {
  private static final int BUFFER = 64 << 10;

  /** How long any single call may take: many times all the time-outs it can meet. */
  private static final long CALL_NANOS = 1_000_000_000L;

  private final SplittableRandom random;
  private final Malice malice;
  private final int blockSize;
  private int calls;
  private int verified;
  private NvmeController controller;
  private BlockDevice device;
  private DmaBuffer buffer;

  /**
   * @param blockSize what every namespace really has
   */
  HostScript(SplittableRandom random, Malice malice, int blockSize) {
    this.random = random;
    this.malice = malice;
    this.blockSize = blockSize;
  }

  /** How many calls succeeded or failed properly. */
  int calls() {
    return calls;
  }

  /** How many Reads were compared with what had been written. */
  int verified() {
    return verified;
  }

  void run(PciFunction function, ControllerOptions options, int steps) {
    if (!call(() -> controller = NvmeController.open(function, options))) {
      return;
    }
    try {
      call(this::checkController);
      call(() -> buffer = DmaBuffer.allocate(function, BUFFER));
      for (int i = 0; i < steps; i++) {
        call(this::step);
      }
      honest();
    } finally {
      closeDevice();
      long start = System.nanoTime();
      controller.close();
      requireQuick(start, "close");
      if (buffer != null) {
        buffer.close();
      }
    }
  }

  /** Whether it succeeded; anything but success and an NvmeException goes through. */
  private boolean call(Runnable action) {
    long start = System.nanoTime();
    boolean succeeded = true;
    try {
      action.run();
    } catch (NvmeException e) {
      Printable.require(e);
      succeeded = false;
    }
    requireQuick(start, "a call");
    calls++;
    return succeeded;
  }

  private static void requireQuick(long start, String what) {
    long nanos = System.nanoTime() - start;
    if (nanos > CALL_NANOS) {
      throw new AssertionError(what + " took " + nanos / 1_000_000 + " ms");
    }
  }

  private static void require(boolean holds, String message) {
    if (!holds) {
      throw new AssertionError(message);
    }
  }

  private void step() {
    switch (random.nextInt(32)) {
      case 0, 1, 2, 3 -> identify();
      case 4, 5, 6, 7, 8, 9 -> logs();
      case 10, 11, 12, 13 -> features();
      case 14, 15 -> {
        controller.rescanNamespaces();
        checkController();
      }
      case 16, 17 -> {
        for (AsyncEvent event : controller.pollEvents()) {
          Printable.require(event.toString());
        }
      }
      case 18 -> controller.keepAlive().send();
      case 19 -> queuePair();
      case 20 -> controller.format(anyNamespace().nsid(), random.nextInt(9), 0);
      case 21 -> {
        if (random.nextInt(4) == 0) {
          controller.reset();
          checkController();
        }
      }
      case 22 -> {
        if (random.nextInt(16) == 0) {
          controller.shutdown();
        }
      }
      case 23 -> closeDevice();
      case 24, 25, 26 -> roundTrip();
      default -> block();
    }
  }

  // ---- what it says about itself

  private void checkController() {
    require(
        controller.maxTransferBytes() >= 4096 && controller.maxTransferBytes() <= 1 << 30,
        "maxTransferBytes " + controller.maxTransferBytes());
    require(
        controller.maxQueuePairs() >= 0
            && controller.maxQueuePairs() <= controller.options().queuePairs(),
        "maxQueuePairs " + controller.maxQueuePairs());
    require(controller.maxDepth() >= 1 && controller.maxDepth() <= 65535, "maxDepth");
    IdentifyController id = controller.identify();
    Printable.require(id.sn() + id.mn() + id.fr() + id.subnqn());
    show(id);
    controller.bringUpSteps().forEach(s -> Printable.require(s.toString()));
    Printable.require(controller.hostMemoryBuffer().status());
    int before = 0;
    for (Namespace n : controller.namespaces()) {
      require(Integer.compareUnsigned(n.nsid(), before) > 0, "NSIDs are not in order");
      before = n.nsid();
      check(n);
    }
  }

  private static void check(Namespace n) {
    Printable.require(n.toString());
    Printable.require(String.valueOf(n.uniqueId()));
    n.writeProtected();
    show(n.identify());
    if (n.usable()) {
      int size = n.blockSize();
      require(size >= 512 && size <= 65536 && Integer.bitCount(size) == 1, "block size " + size);
      require(n.blocks() >= 0 && n.bytes() / size == n.blocks(), n + " has " + n.bytes());
    } else {
      Printable.require(n.reason());
    }
  }

  private static void show(Structure structure) {
    for (FieldValue field : structure.fields()) {
      Printable.require(field.text());
    }
  }

  private Namespace anyNamespace() {
    List<Namespace> all = controller.namespaces();
    return all.isEmpty() ? controller.namespace(1) : all.get(random.nextInt(all.size()));
  }

  private void identify() {
    MemorySegment page = controller.identify(random.nextInt(0x20), random.nextInt(4));
    show(new IdentifyController(page));
    new NamespaceDescriptors(page).list();
    controller.identify(Cns.NAMESPACE, 1 + random.nextInt(2));
  }

  private void logs() {
    switch (random.nextInt(7)) {
      case 0 -> show(controller.logs().smart());
      case 1 -> {
        for (ErrorLogEntry entry : controller.logs().errors(1 + random.nextInt(64))) {
          show(entry);
        }
      }
      case 2 -> show(controller.logs().firmwareSlots());
      case 3 -> controller.logs().changedNamespaces().stream().toList();
      case 4 -> controller.logs().commandsEffects().admin(random.nextInt(256));
      default -> controller.logs().read(random.nextInt(256), 4 * (1 + random.nextInt(2048)));
    }
  }

  private void features() {
    int fid = random.nextInt(0x20);
    switch (random.nextInt(4)) {
      case 0 -> controller.features().set(fid, random.nextInt(4));
      case 1 -> controller.features().get(fid, 0, Features.SEL_CURRENT, 0, 512);
      default -> controller.features().get(fid);
    }
  }

  // ---- queues and blocks

  private void queuePair() {
    QueuePair pair = controller.createQueuePair(1 + random.nextInt(16));
    if (random.nextBoolean()) {
      controller.abort(pair, random.nextInt(0x1_0000));
    }
    controller.deleteQueuePair(pair);
  }

  private BlockDevice device() {
    if (device == null) {
      device = BlockDevice.open(controller, anyNamespace(), 1 + random.nextInt(8));
    }
    return device;
  }

  private void closeDevice() {
    BlockDevice old = device;
    device = null;
    if (old != null) {
      call(old::close);
    }
  }

  private void block() {
    BlockDevice d = device();
    long most = Math.max(1, BUFFER / d.namespace().blockSize());
    long blocks = 1 + random.nextLong(most);
    long slba = random.nextLong(Math.max(1, Math.min(256, d.namespace().blocks())));
    switch (random.nextInt(9)) {
      case 0 -> d.flush();
      case 1 -> d.compare(slba, blocks, buffer.range(), 0);
      case 2 -> d.verify(slba, blocks);
      case 3 -> d.writeZeroes(slba, blocks, random.nextBoolean());
      case 4 -> d.trim(slba, blocks);
      case 5, 6 -> d.read(slba, blocks, buffer.range(), 0);
      default -> d.write(slba, blocks, buffer.range(), 0, random.nextBoolean());
    }
  }

  /** Writes and reads back without lies; what comes back must be what was written. */
  private void roundTrip() {
    malice.quiet(true);
    try {
      BlockDevice d = device();
      int size = d.namespace().blockSize();
      long blocks = 1 + random.nextInt(BUFFER / 2 / size);
      int bytes = (int) blocks * size;
      MemorySegment m = buffer.memory();
      byte mark = (byte) random.nextInt();
      m.asSlice(0, bytes).fill(mark);
      m.set(ValueLayout.JAVA_LONG, 0, random.nextLong());
      byte[] written = m.asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE);
      d.write(0, blocks, buffer.range(), 0);
      m.fill((byte) ~mark);
      d.read(0, blocks, buffer.range(), 0);
      if (size == blockSize && malice.leavesDataAlone()) {
        require(
            m.asSlice(0, bytes).mismatch(MemorySegment.ofArray(written)) < 0,
            "a Read did not return what had been written");
        require(m.get(ValueLayout.JAVA_BYTE, bytes) == (byte) ~mark, "a Read went too far");
        verified++;
      }
    } finally {
      malice.quiet(false);
    }
  }

  /** Once the lies end, a reset brings the controller back, unless it is gone. */
  private void honest() {
    malice.quiet(true);
    closeDevice();
    NvmeException last = null;
    for (int i = 0; i < 100 && !malice.isGone(); i++) {
      try {
        controller.reset();
        require(
            new IdentifyController(controller.identify(Cns.CONTROLLER, 0)).sqes() == 0x66,
            "Identify is wrong after a reset");
        call(this::roundTrip);
        return;
      } catch (NvmeException e) {
        // The time-outs are so short that a busy machine may miss them.
        last = e;
      }
    }
    if (!malice.isGone()) {
      throw new AssertionError("the controller never came back", last);
    }
  }
}
