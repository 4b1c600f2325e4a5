package io.gpunvme.nvme.vfiouser;

import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.ProtocolException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Commands to the peer and the answers to them, whichever end this is. Safe for all threads.
 *
 * <p>Whoever receives gives the answers to {@link #answered}. One that does not come in time ends
 * the connection: what the peer would still do cannot be known.
 */
public final class Exchange {
  private static final int IDS = 1 << 16;

  private final Connection connection;
  private final String name;
  private final Duration patience;
  private final Runnable hangUp;

  /** By id; guarded by this. */
  private final Map<Integer, CompletableFuture<Message>> waiting = new HashMap<>();

  private int lastId;

  // Written once, under the monitor; read without it by every register access.
  private volatile @Nullable String lost;

  /**
   * Over a connection that somebody else owns.
   *
   * @param name of the peer, for messages
   * @param patience how long an answer may take
   * @param hangUp ends the connection, as far as this end should
   */
  public Exchange(Connection connection, String name, Duration patience, Runnable hangUp) {
    this.connection = connection;
    this.name = name;
    this.patience = patience;
    this.hangUp = hangUp;
  }

  /** Why there is no peer any more; null while there is one. */
  public @Nullable String lost() {
    return lost;
  }

  /**
   * Asks and waits for the answer, which the caller closes.
   *
   * @throws RefusedException if the answer is an error
   * @throws DeviceGoneException if no answer came
   * @throws ProtocolException if it answers something else
   */
  public Message call(int command, ByteBuffer payload, int... descriptors) {
    CompletableFuture<Message> answer = new CompletableFuture<>();
    int id = register(answer);
    try {
      connection.command(id, command, 0, payload, descriptors);
    } catch (PosixException | IllegalStateException e) {
      end("it takes no messages any more: " + e.getMessage());
    } catch (Error e) { // without memory nothing was sent
      forget(id);
      throw e;
    }
    Message reply = await(command, answer);
    if (reply.command() != command) {
      reply.close();
      throw breach("%s answers %s".formatted(Command.name(reply.command()), Command.name(command)));
    }
    if (reply.error() != 0) {
      reply.close();
      throw new RefusedException(command, reply.error());
    }
    return reply;
  }

  private synchronized int register(CompletableFuture<Message> answer) {
    String why = lost;
    if (why != null) {
      throw gone(why);
    }
    do {
      lastId = (lastId + 1) % IDS;
    } while (waiting.containsKey(lastId));
    waiting.put(lastId, answer);
    return lastId;
  }

  private synchronized void forget(int id) {
    waiting.remove(id);
  }

  private Message await(int command, CompletableFuture<Message> answer) {
    boolean interrupted = false;
    long end = System.nanoTime() + patience.toNanos();
    try {
      while (true) {
        try {
          return answer.get(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (TimeoutException e) {
          // Gives every command an answer, this one too.
          end("no answer to %s within %d ms".formatted(Command.name(command), patience.toMillis()));
          end = System.nanoTime() + patience.toNanos();
        } catch (ExecutionException e) {
          throw gone(String.valueOf(lost));
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private DeviceGoneException gone(String why) {
    return new DeviceGoneException(name + " is gone: " + why);
  }

  /** The peer broke the rules: the connection ends. */
  public ProtocolException breach(String what) {
    end(what);
    return new ProtocolException(name + ": " + what);
  }

  /**
   * An answer has arrived.
   *
   * @throws ProtocolException if nothing was asked; the message is closed then
   */
  public void answered(Message reply) {
    CompletableFuture<Message> answer;
    synchronized (this) {
      answer = waiting.remove(reply.id());
    }
    if (answer == null || !answer.complete(reply)) {
      reply.close();
      throw new ProtocolException(
          "an answer (%s, id %d) to nothing that was asked"
              .formatted(Command.name(reply.command()), reply.id()));
    }
  }

  /** There is no peer any more: whoever waits learns why, the connection ends. Idempotent. */
  public void end(String why) {
    Map<Integer, CompletableFuture<Message>> left;
    synchronized (this) {
      if (lost == null) {
        lost = why;
      }
      left = new HashMap<>(waiting);
      waiting.clear();
    }
    try {
      hangUp.run();
    } finally {
      DeviceGoneException gone = new DeviceGoneException(String.valueOf(lost));
      left.values().forEach(f -> f.completeExceptionally(gone));
    }
  }
}
