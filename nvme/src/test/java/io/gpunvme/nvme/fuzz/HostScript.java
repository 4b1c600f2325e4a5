package io.gpunvme.nvme.fuzz;

import io.gpunvme.base.InvalidRequestException;
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
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.FieldValue;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.Structure;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.SplittableRandom;

/**
 * What a host does with a controller it cannot trust: everything the driver offers, in random
 * order. Every call must return something sensible or throw an {@link NvmeException}.
 */
final class HostScript {
  private static final int UNKNOWN = 0;
  private static final int BUFFER = 128 << 10;

  /**
   * How long any single call may take. The longest one is a scan of all namespaces of a controller
   * that claims to have as many as the driver looks at.
   */
  private static final long CALL_NANOS = 15_000_000_000L;

  private final SplittableRandom random;
  private final Malice malice;
  private int blockSize;
  private int calls;
  private int verified;
  private boolean outOfService;
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
    malice.quiet(random.nextInt(8) < 5);
    boolean open = call(() -> controller = NvmeController.open(function, options));
    malice.quiet(false);
    if (!open) {
      return;
    }
    try {
      call(this::checkController);
      call(() -> buffer = DmaBuffer.allocate(function, BUFFER));
      for (int i = 0; i < steps; i++) {
        call(outOfService ? this::revive : this::step);
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
    } catch (NvmeException | InvalidRequestException e) {
      Printable.require(e);
      outOfService |= String.valueOf(e.getMessage()).matches(".*(out of service|shut down).*");
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

  /** The driver gave the controller up; a reset may bring it back. */
  private void revive() {
    outOfService = false;
    malice.quiet(true);
    try {
      controller.reset();
    } finally {
      malice.quiet(false);
    }
  }

  private void step() {
    switch (random.nextInt(40)) {
      case 0, 1, 2, 3, 4, 5 -> identify();
      case 6, 7, 8, 9, 10, 11, 12, 13, 14 -> logs();
      case 15, 16, 17, 18, 19 -> features();
      case 20, 21, 22, 23 -> {
        controller.rescanNamespaces();
        checkController();
      }
      case 24, 25 -> {
        for (AsyncEvent event : controller.pollEvents()) {
          Printable.require(event.toString());
        }
      }
      case 26 -> controller.keepAlive().send();
      case 27 -> queuePair();
      case 28 -> format();
      case 29 -> {
        if (random.nextInt(4) == 0) {
          controller.reset();
          checkController();
        }
      }
      case 30 -> {
        if (random.nextInt(16) == 0) {
          controller.shutdown();
        }
      }
      case 31 -> closeDevice();
      case 32, 33, 34 -> roundTrip();
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
    Printable.require(
        id.getText(IdentifyController.SN)
            + id.getText(IdentifyController.MN)
            + id.getText(IdentifyController.FR)
            + id.getText(IdentifyController.SUBNQN));
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
    int cns = random.nextInt(random.nextInt(4) == 0 ? 0x20 : Cns.NAMESPACE_DESCRIPTORS + 1);
    int nsid = cns == Cns.CONTROLLER ? 0 : 1 + random.nextInt(2);
    MemorySegment page = controller.identify(cns, nsid);
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
      case 3 -> controller.logs().changedNamespaces().stream().forEach(nsid -> {});
      case 4 -> controller.logs().commandsEffects().admin(random.nextInt(256));
      case 5 -> controller.logs().read(random.nextInt(256), 4 * (1 + random.nextInt(2048)));
      default -> controller.logs().read(1 + random.nextInt(5), 4 * (1 + random.nextInt(1024)));
    }
  }

  private void features() {
    int fid = random.nextInt(0x20);
    switch (random.nextInt(8)) {
      case 0, 1 -> controller.features().set(fid, random.nextInt(4));
      case 2 -> controller.features().get(fid, 0, Features.SEL_CURRENT, 0, 512);
      case 3, 4 -> controller.features().get(FeatureId.TIMESTAMP, 0, Features.SEL_CURRENT, 0, 512);
      default -> controller.features().get(fid);
    }
  }

  private void format() {
    int format = random.nextInt(8) == 0 ? random.nextInt(9) : 0;
    if (format != 0) {
      blockSize = UNKNOWN;
    }
    controller.format(anyNamespace().nsid(), format, 0);
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
    RuntimeException last = null;
    for (int i = 0; i < 100 && !malice.isGone(); i++) {
      try {
        controller.reset();
        require(
            new IdentifyController(controller.identify(Cns.CONTROLLER, 0))
                    .getInt(IdentifyController.SQES)
                == 0x66,
            "Identify is wrong after a reset");
        call(this::roundTrip);
        return;
      } catch (NvmeException | InvalidRequestException e) {
        // The time-outs are so short that a busy machine may miss them.
        last = e;
      }
    }
    if (!malice.isGone()) {
      throw new AssertionError("the controller never came back", last);
    }
  }
}
