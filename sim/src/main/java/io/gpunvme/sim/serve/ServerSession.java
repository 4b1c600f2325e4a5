package io.gpunvme.sim.serve;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.nvme.vfiouser.Exchange;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import io.gpunvme.sim.InterruptSink;
import io.gpunvme.sim.SimulatedController;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.jspecify.annotations.Nullable;

/**
 * One client, from its first message to its last.
 *
 * <p>Two threads: one receives, the caller of {@link #run} carries out. A command may have to wait
 * for the controller's workers, and those for the client's answers, which the first thread takes.
 */
final class ServerSession {
  static final int MOST_DESCRIPTORS = 16;

  /** Data, and the header of the largest request. */
  private static final int LARGEST_PAYLOAD = (int) Protocol.DEFAULT_MAX_TRANSFER + 4096;

  /** Commands that wait to be carried out; who sends more waits in the socket. */
  private static final int BACKLOG = 16;

  private final SimulatedController controller;
  private final Connection connection;
  private final Exchange exchange;
  private final DeviceRegions regions;
  private final ClientMaps maps;
  private final IrqTable irqs;
  private @Nullable ClientSleep sleep;
  private final BlockingQueue<Optional<Message>> commands = new ArrayBlockingQueue<>(BACKLOG);
  private final Thread receiver;
  private @Nullable Capabilities client;

  ServerSession(SimulatedController controller, UnixSocket socket, String name) {
    this.controller = controller;
    socket.sendTimeout(VfioUserServer.PATIENCE);
    connection = new Connection(socket, LARGEST_PAYLOAD, MOST_DESCRIPTORS);
    // The client learns of the end when its memory is let go of, and not before.
    exchange = new Exchange(connection, name, VfioUserServer.PATIENCE, connection::endReceiving);
    regions = new DeviceRegions(controller);
    maps = new ClientMaps(controller, exchange);
    irqs = new IrqTable(controller);
    receiver = Thread.ofPlatform().daemon().name("vfio-user-receiver").unstarted(this::receive);
  }

  /**
   * Serves until the client is gone or {@link #end} is called, and takes everything back.
   *
   * @return why it is over
   */
  String run() {
    controller.interruptSink(irqs);
    receiver.start();
    try {
      Optional<Message> next = commands.take();
      while (next.isPresent()) {
        try (Message message = next.get()) {
          carryOut(message);
        }
        next = commands.take();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (NvmeException | InvalidRequestException | PosixException e) {
      end(String.valueOf(e.getMessage()));
    } finally {
      end("it has ended the connection");
      release();
    }
    return String.valueOf(exchange.lost());
  }

  /** Ends the connection; {@link #run} returns soon. */
  void end(String why) {
    exchange.end(why);
  }

  private void release() {
    boolean interrupted = false;
    while (receiver.isAlive()) {
      try {
        // It may stand before a full queue.
        Optional<Message> left = commands.poll();
        if (left != null) {
          left.ifPresent(Message::close);
        }
        receiver.join(1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    commands.forEach(m -> m.ifPresent(Message::close));
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    try {
      // First the controller forgets its commands, then their memory goes.
      controller.startOver();
    } finally {
      controller.interruptSink(InterruptSink.NONE);
      endSleep();
      maps.close();
      irqs.close();
      connection.close();
    }
  }

  private void endSleep() {
    ClientSleep begun = sleep;
    if (begun != null) {
      controller.sharedSleep(null);
      begun.close();
    }
  }

  // ---- receiving

  private void receive() {
    String why = "it has ended the connection";
    try {
      Optional<Message> next = connection.receive();
      while (next.isPresent()) {
        sort(next.get());
        next = connection.receive();
      }
    } catch (NvmeException | InvalidRequestException | IllegalStateException e) {
      why = String.valueOf(e.getMessage());
    } catch (InterruptedException e) {
      why = "interrupted";
    }
    exchange.end(why);
    try {
      commands.put(Optional.empty());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void sort(Message message) throws InterruptedException {
    // Whatever it asks, workers may have to do with it: they need not hear of it last.
    controller.wake();
    if (message.isReply()) {
      exchange.answered(message);
    } else if (message.isCommand()) {
      commands.put(Optional.of(message));
    } else {
      message.close();
      throw new ProtocolException("a message that is neither command nor reply");
    }
  }

  // ---- carrying out

  private void carryOut(Message message) {
    Answer answer;
    try {
      answer = answer(message);
    } catch (RefusedException e) {
      if (client == null) {
        throw new ProtocolException("it does not begin with VERSION: " + e.getMessage());
      }
      if (!message.wantsNoReply()) {
        connection.refuse(message, e.errno());
      }
      return;
    }
    if (!message.wantsNoReply()) {
      connection.reply(message, answer.payload(), answer.descriptors());
    }
  }

  private Answer answer(Message message) {
    int command = message.command();
    if (client == null) {
      return negotiate(message);
    }
    if (!takesDescriptors(command) && !message.descriptors().isEmpty()) {
      throw new RefusedException(command, Errno.EINVAL);
    }
    return switch (command) {
      case Command.DMA_MAP -> maps.map(message, client.maxTransfer());
      case Command.DMA_UNMAP -> maps.unmap(message);
      case Command.DEVICE_GET_INFO -> regions.device(message);
      case Command.DEVICE_GET_REGION_INFO -> regions.region(message);
      case Command.DEVICE_GET_REGION_IO_FDS -> regions.ioDescriptors(message);
      case Command.DEVICE_GET_IRQ_INFO -> irqs.info(message);
      case Command.DEVICE_SET_IRQS -> irqs.set(message);
      case Command.REGION_READ -> regions.read(message);
      case Command.REGION_WRITE -> regions.write(message);
      case Command.DEVICE_RESET -> reset(message);
      default -> throw new RefusedException(command, Errno.EOPNOTSUPP);
    };
  }

  /** Those of DMA_UNMAP, which SPDK's initiator sends, mean nothing; they are closed. */
  private static boolean takesDescriptors(int command) {
    return command == Command.DMA_MAP
        || command == Command.DMA_UNMAP
        || command == Command.DEVICE_SET_IRQS;
  }

  private Answer negotiate(Message message) {
    boolean version = message.command() == Command.VERSION && message.descriptors().isEmpty();
    if (!version) {
      throw new RefusedException(message.command(), Errno.EINVAL);
    }
    Capabilities theirs = Capabilities.parse(message.payload());
    if (theirs.major() != Protocol.MAJOR) {
      connection.refuse(message, Errno.EINVAL);
      throw new ProtocolException("version %d.%d".formatted(theirs.major(), theirs.minor()));
    }
    client = theirs;
    int minor = Math.min(theirs.minor(), Protocol.MINOR);
    if (theirs.sleep()) {
      ClientSleep begun = new ClientSleep();
      sleep = begun;
      regions.sleep(begun);
      controller.sharedSleep(begun);
    }
    Capabilities ours =
        new Capabilities(
            Protocol.MAJOR, minor, MOST_DESCRIPTORS, Protocol.DEFAULT_MAX_TRANSFER, theirs.sleep());
    return Answer.of(ours.payload(ClientMaps.MOST));
  }

  private Answer reset(Message message) {
    if (message.payload().hasRemaining()) {
      throw new RefusedException(message.command(), Errno.EINVAL);
    }
    controller.reset();
    return Answer.of(Protocol.payload(0));
  }

  /** What a command is answered with. */
  record Answer(ByteBuffer payload, int... descriptors) {
    static Answer of(ByteBuffer payload) {
      return new Answer(payload);
    }
  }
}
