package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.host.FileConfigSpace;
import io.gpunvme.nvme.pci.host.HugePages;
import io.gpunvme.nvme.pci.host.MappedBar;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A PCI function that another process plays, over a vfio-user socket.
 *
 * <p>Registers are messages; doorbells are memory of the server that is mapped here, so that a
 * store is the whole submission. Memory is given to the server by its descriptor. When the server
 * ends, or does not answer in time, registers read all ones and nothing can be mapped any more;
 * opening the function again is the way back. Interrupts are not used: INTx is disabled, MSI-X is
 * left off. Safe for all threads.
 */
public final class VfioUserFunction implements PciFunction {
  /** What SPDK's target calls its socket in the folder that it is given. */
  private static final String IN_FOLDER = "cntrl";

  private static final int MOST_DESCRIPTORS = 16;

  private static final String CUT = "it has cut the memory that it gave to be mapped";

  /** Data, its header, and room for capabilities. */
  private static final int LARGEST_PAYLOAD = (int) Protocol.DEFAULT_MAX_TRANSFER + 4096;

  private static final int SMALLEST_CONFIG = 256;

  private final String name;
  private final Requests requests;
  private final ClientMemory memory;
  private final HugePages hugePages = new HugePages(NumaHome.NONE);
  private final @Nullable ServerSleep sleep;
  private final @Nullable MappedBar[] bars = new MappedBar[Protocol.BARS];
  private final boolean messages;
  private final boolean resets;
  private final ConfigSpace config;
  private boolean closed;

  /** Whether the server was lost, and did not let go of the memory in time. */
  private volatile boolean doubted;

  private VfioUserFunction(String name, Connection connection, VfioUserOptions options) {
    this.name = name;
    this.messages = options.messages();
    this.memory = new ClientMemory(name, messages);
    this.requests = new Requests(connection, name, options.timeout(), memory::answer);
    try {
      requests.start();
      Capabilities server = negotiate();
      resets = (deviceFlags() & Protocol.DEVICE_RESETS) != 0;
      for (int i = 0; i < Protocol.BARS; i++) {
        bars[i] = bar(i, RegionInfo.ask(requests, i));
      }
      sleep = server.sleep() ? sleep() : null;
      config = configSpace(RegionInfo.ask(requests, Protocol.REGION_CONFIG));
      // It is as the last client left it.
      reset();
      String lost = requests.lost();
      if (lost != null) {
        throw new DeviceGoneException(name + " is gone: " + lost);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, List.<Runnable>of(requests::close, this::release), Runnable::run);
      if (e instanceof RefusedException refused) {
        throw new ProtocolException(name + " refuses " + refused.getMessage());
      }
      throw e;
    }
  }

  /**
   * Connects to a server.
   *
   * @param path its socket, or the folder of an SPDK listener
   * @throws InvalidRequestException if nobody listens there; the message says what helps
   * @throws DeviceGoneException if the server does not answer: another client may have it
   * @throws ProtocolException if it answers nonsense, or is not a PCI function
   */
  public static VfioUserFunction open(Path path, VfioUserOptions options) {
    Path socket = Files.isDirectory(path) ? path.resolve(IN_FOLDER) : path;
    String name = "vfio-user:" + path;
    UnixSocket connected;
    try {
      connected = UnixSocket.connect(socket, options.timeout());
    } catch (PosixException e) {
      InvalidRequestException refused =
          new InvalidRequestException(name + ": " + advice(socket, e));
      refused.initCause(e);
      throw refused;
    } catch (IllegalArgumentException e) {
      throw new InvalidRequestException(name + ": " + e.getMessage());
    }
    Connection connection =
        CloseAll.orClose(
            () -> new Connection(connected, LARGEST_PAYLOAD, MOST_DESCRIPTORS), connected::close);
    return new VfioUserFunction(name, connection, options);
  }

  private static String advice(Path socket, PosixException e) {
    return switch (e.errno()) {
      case Errno.ENOENT ->
          "there is no socket "
              + socket
              + "; start a server first, e.g. gpunvme sim serve --socket "
              + socket;
      case Errno.ECONNREFUSED ->
          "nobody listens at " + socket + " any more; start its server again";
      case Errno.EACCES, Errno.EPERM ->
          "you may not connect to " + socket + " (" + e.errnoName() + "); its owner may";
      case Errno.EAGAIN -> socket + " takes no connection: other clients wait for it already";
      default -> String.valueOf(e.getMessage());
    };
  }

  private Capabilities negotiate() {
    Capabilities ours = Capabilities.ours(MOST_DESCRIPTORS);
    try (Message answer = requests.call(Command.VERSION, ours.payload(0))) {
      Capabilities theirs = Capabilities.parse(answer.payload());
      if (theirs.major() != Protocol.MAJOR) {
        throw new ProtocolException(
            "%s speaks version %d.%d of vfio-user; this is %d.%d"
                .formatted(name, theirs.major(), theirs.minor(), Protocol.MAJOR, Protocol.MINOR));
      }
      return theirs;
    } catch (DeviceGoneException e) {
      throw new DeviceGoneException(
          e.getMessage() + "; a server has one client at a time: end the other one first");
    }
  }

  private int deviceFlags() {
    ByteBuffer ask =
        Protocol.payload(Protocol.DEVICE_INFO_BYTES).putInt(Protocol.DEVICE_INFO_BYTES);
    try (Message answer = requests.call(Command.DEVICE_GET_INFO, ask.clear())) {
      ByteBuffer payload = answer.payload();
      if (payload.remaining() < Protocol.DEVICE_INFO_BYTES) {
        throw requests.breach("no information about the device in the answer");
      }
      int flags = payload.getInt(4);
      int regions = payload.getInt(8);
      if ((flags & Protocol.DEVICE_PCI) == 0 || regions <= Protocol.REGION_CONFIG) {
        throw new ProtocolException(
            "%s is not a PCI function: flags %Xh, %d regions".formatted(name, flags, regions));
      }
      return flags;
    }
  }

  private @Nullable MappedBar bar(int index, RegionInfo info) {
    return info.size() == 0
        ? null
        : new MappedBar(
            "BAR " + index + " of " + name,
            info.size(),
            info.parts(),
            new RegionAccess(requests, index),
            0);
  }

  private ServerSleep sleep() {
    RegionInfo info = RegionInfo.ask(requests, SleepRegion.INDEX);
    List<MappedBar.Part> parts = info.parts();
    if (parts.size() != 1
        || parts.getFirst().offset() != 0
        || parts.getFirst().mapping().segment().byteSize() != SleepRegion.BYTES) {
      CloseAll.each(parts, p -> p.mapping().close());
      throw requests.breach("region " + SleepRegion.INDEX + " is not one page to be mapped");
    }
    MappedBar.Part page = parts.getFirst();
    return CloseAll.orClose(() -> new ServerSleep(page, this::memoryGone), page.mapping()::close);
  }

  private ConfigSpace configSpace(RegionInfo info) {
    CloseAll.each(info.parts(), p -> p.mapping().close());
    if (info.size() < SMALLEST_CONFIG) {
      throw new ProtocolException(name + " has a configuration space of " + info.size() + " bytes");
    }
    int size = (int) Math.min(info.size(), 4096);
    return new FileConfigSpace(new RegionAccess(requests, Protocol.REGION_CONFIG), 0, size);
  }

  /** {@code vfio-user:/run/gpunvme.sock}. */
  @Override
  public String name() {
    return name;
  }

  /** What bus addresses are, in words. */
  public String how() {
    return messages
        ? "addresses of our choice; every byte is a message"
        : "addresses of our choice, memory by descriptors";
  }

  @Override
  public Bar bar(int index) {
    MappedBar bar = index < 0 || index >= bars.length ? null : bars[index];
    if (bar == null) {
      throw new InvalidRequestException(name + " has no BAR " + index);
    }
    return bar;
  }

  @Override
  public ConfigSpace config() {
    return config;
  }

  @Override
  public int addressBits() {
    return ClientMemory.ADDRESS_BITS;
  }

  /** Its server polls them. */
  @Override
  public boolean polled() {
    return true;
  }

  @Override
  public DoorbellPoller poller() {
    return sleep == null ? DoorbellPoller.TIRELESS : sleep.known();
  }

  /** The server can cut its files at any time; it is as good as dead then. */
  @Override
  public boolean memoryGone() {
    if (requests.lost() == null) {
      requests.end(CUT);
    }
    return true;
  }

  @Override
  public boolean needsDescriptors() {
    return !messages;
  }

  /** Out of huge pages where the system has some. */
  @Override
  public HostMemory allocate(long bytes) {
    return hugePages.allocate(bytes);
  }

  /**
   * Gives the server the memory.
   *
   * @throws io.gpunvme.nvme.DmaMappingException if it has no descriptor, and messages are not used
   * @throws DeviceGoneException if there is no server any more
   */
  @Override
  public BusRange map(MemorySegment segment) {
    return memory.map(requests, segment);
  }

  /**
   * Resets the function. What is mapped stays mapped; INTx is disabled, memory space on, bus
   * mastering off.
   *
   * @throws DeviceGoneException if there is no server any more
   */
  @Override
  public void reset() {
    if (resets) {
      try {
        requests.call(Command.DEVICE_RESET, Protocol.payload(0)).close();
      } catch (RefusedException e) {
        throw new ProtocolException(name + " refuses " + e.getMessage());
      }
    }
    int command = config.read(ConfigSpace.COMMAND, 2);
    // A server that finds nobody to take its INTx may give up (SPDK: fatal status).
    int on = ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_INTX_DISABLE;
    config.write(ConfigSpace.COMMAND, 2, command & ~ConfigSpace.COMMAND_BUS_MASTER | on);
  }

  /**
   * A server that does not answer may only be slow, or paused: it goes on where it was when it
   * wakes. It has let go of everything when it has ended the connection, as it does when it finds
   * that this end has; that is waited for as long as for an answer, once.
   */
  @Override
  public boolean stopDma() {
    try {
      PciFunction.super.stopDma();
    } catch (Error e) {
      // There is no memory for the message that tells it to. The connection's end does so, too.
      requests.end("it could not be told to stop: " + e.getMessage());
    }
    if (requests.lost() == null) {
      return true;
    }
    memory.revoke();
    doubted = !messages && !(doubted ? requests.over() : requests.awaitOver());
    return !doubted;
  }

  @Override
  public @Nullable String inDoubt() {
    return doubted && !requests.over()
        ? name + " may still write to memory that it was given, until its process ends"
        : null;
  }

  /** Takes the memory back from the server and ends the connection. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    CloseAll steps = new CloseAll();
    if (stopDma()) {
      steps.run(() -> memory.unmapAll(requests));
      steps.run(requests::close);
    } else {
      steps.run(requests::leave);
    }
    steps.run(this::release);
    steps.<RuntimeException>end();
  }

  private void release() {
    CloseAll steps = new CloseAll();
    steps.run(() -> CloseAll.all(sleep));
    steps.run(() -> CloseAll.all(bars));
    steps.<RuntimeException>end();
  }
}
