package io.gpunvme.storage.layer;

import io.gpunvme.storage.layer.FakeStreams.FakeStream;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Streams that are threads. */
final class FakeStreams implements LayerStreams<FakeStream> {
  private boolean mayWait = true;
  private boolean closed;

  /** Runs what is put in, in this order. */
  static final class FakeStream implements AutoCloseable {
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private boolean refuses;

    void put(Runnable work) {
      if (refuses) {
        throw new IllegalStateException("this stream is closed");
      }
      thread.execute(work);
    }

    /** What is put in from now on is refused. */
    void refuse() {
      refuses = true;
    }

    /** Waits for what was put in; false if it does not end. */
    boolean ends() throws InterruptedException {
      thread.shutdown();
      return thread.awaitTermination(30, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
      thread.shutdownNow();
    }
  }

  void refuseWaits() {
    mayWait = false;
  }

  boolean isClosed() {
    return closed;
  }

  @Override
  public Gate<FakeStream> gate(int slot) {
    return new FakeGate();
  }

  @Override
  public Use<FakeStream> use() {
    return new FakeUse();
  }

  @Override
  public boolean mayWait(FakeStream stream) {
    return mayWait;
  }

  @Override
  public void close() {
    closed = true;
  }

  private static final class FakeGate implements Gate<FakeStream> {
    private int opened;

    @Override
    public void await(FakeStream stream, int turn) {
      stream.put(() -> awaitTurn(turn));
    }

    private synchronized void awaitTurn(int turn) {
      try {
        while (opened - turn < 0) {
          wait();
        }
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public synchronized void open(int turn) {
      opened = Math.max(opened, turn);
      notifyAll();
    }
  }

  private static final class FakeUse implements Use<FakeStream> {
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile long before;
    private volatile long begin;

    @Override
    public void begin(FakeStream stream, Gate<FakeStream> gate, int turn) {
      stream.put(() -> before = System.nanoTime());
      gate.await(stream, turn);
      stream.put(() -> begin = System.nanoTime());
    }

    @Override
    public void end(FakeStream stream) {
      stream.put(over::countDown);
    }

    @Override
    public boolean isOver() {
      return over.getCount() == 0;
    }

    @Override
    public void awaitOver() {
      try {
        over.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public long waitedNanos() {
      return begin - before;
    }

    @Override
    public void recycle() {}
  }
}
