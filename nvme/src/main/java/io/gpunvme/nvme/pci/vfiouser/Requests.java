package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.Uninterrupted;
import io.gpunvme.ffi.Errno;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.nvme.vfiouser.Exchange;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.RefusedException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What is asked of the server, and what it asks. Safe for all threads.
 *
 * <p>A thread of its own receives; it answers the server's requests at once, so that the server may
 * make them while it is asked something itself.
 */
final class Requests implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.vfiouser");
  private static final String CLOSED = "it is closed";

  /** Answers a request of the server. */
  @FunctionalInterface
  interface Answers {
    /**
     * The payload of the answer.
     *
     * @throws RefusedException with what is wrong with the request
     */
    ByteBuffer to(Message request);
  }

  private final Connection connection;
  private final String name;
  private final Duration patience;
  private final Exchange exchange;
  private final Answers answers;
  private final Thread receiver;

  /** Whether the server has ended the connection, too. Guarded by this. */
  private boolean over;

  /** Whether nobody waits for that. Guarded by this. */
  private boolean left;

  Requests(Connection connection, String name, Duration patience, Answers answers) {
    this.connection = connection;
    this.name = name;
    this.patience = patience;
    this.exchange = new Exchange(connection, name, patience, connection::endSending);
    this.answers = answers;
    receiver = Thread.ofPlatform().daemon().name(name).unstarted(this::receive);
  }

  void start() {
    receiver.start();
  }

  /** Why there is no server any more; null while there is one. */
  @Nullable String lost() {
    return exchange.lost();
  }

  /** See {@link Exchange#call}. */
  Message call(int command, ByteBuffer payload, int... descriptors) {
    return exchange.call(command, payload, descriptors);
  }

  /** As {@link #breach} for who has nobody to tell: it is logged. */
  void end(String why) {
    LOG.log(System.Logger.Level.WARNING, "{0}: {1}", name, why);
    exchange.end(why);
  }

  /** The server broke the rules: the connection ends. */
  ProtocolException breach(String what) {
    return exchange.breach(what);
  }

  private void receive() {
    String why = "it has ended the connection";
    try {
      Optional<Message> next = connection.receive();
      while (next.isPresent()) {
        take(next.get());
        next = connection.receive();
      }
    } catch (RuntimeException | Error e) { // also without memory nobody may wait for ever
      why = String.valueOf(e.getMessage());
    }
    try {
      exchange.end(why);
    } catch (Error e) {
      // Whoever closes this tells the server again; its end is to be noticed even so.
    }
    connection.drain();
    synchronized (this) {
      over = true;
      if (left) {
        connection.close();
      }
    }
  }

  private void take(Message message) {
    if (message.isReply()) {
      exchange.answered(message);
      return;
    }
    try (message) {
      if (!message.isCommand()) {
        throw new ProtocolException("a message that is neither command nor reply");
      }
      answer(message);
    }
  }

  private void answer(Message request) {
    ByteBuffer payload;
    try {
      boolean known =
          request.command() == Command.DMA_READ || request.command() == Command.DMA_WRITE;
      if (!known) {
        throw new RefusedException(request.command(), Errno.EOPNOTSUPP);
      }
      payload = answers.to(request);
    } catch (RefusedException e) {
      if (!request.wantsNoReply()) {
        connection.refuse(request, e.errno());
      }
      return;
    }
    if (!request.wantsNoReply()) {
      connection.reply(request, payload);
    }
  }

  /** Whether the server has ended the connection: it has nothing of this process any more. */
  synchronized boolean over() {
    return over;
  }

  /** Waits for that as long as for an answer. */
  boolean awaitOver() {
    Uninterrupted.join(receiver, patience);
    return over();
  }

  /** Ends the connection. Idempotent. */
  @Override
  public void close() {
    CloseAll steps = new CloseAll();
    steps.run(() -> exchange.end(CLOSED));
    steps.run(connection::shutdown);
    steps.run(() -> Uninterrupted.join(receiver));
    steps.run(connection::close);
    steps.<RuntimeException>end();
  }

  /** Ends this end of the connection; the rest is closed when the server has ended the other. */
  synchronized void leave() {
    left = true;
    try {
      exchange.end(CLOSED);
    } finally {
      if (over) {
        connection.close();
      }
    }
  }
}
