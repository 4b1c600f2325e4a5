package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.cufile.CuFileBatch;
import io.gpunvme.cuda.cufile.CuFileCompletion;
import io.gpunvme.cuda.cufile.CuFileDriver;
import io.gpunvme.cuda.cufile.CuFileException;
import io.gpunvme.cuda.cufile.CuFileRange;
import io.gpunvme.cuda.cufile.CuFileRequest;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.cufile.CuFilePieces.Piece;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** One thread of a {@link CuFileJob} that hands its pieces to cuFile in batches. */
final class BatchWorker implements Runnable {
  /** How long a round waits before it looks whether the transfer is still wanted. */
  private static final long WAIT_MILLIS = 100;

  /** Codes of cuFile begin here; smaller ones are the kernel's. */
  private static final long FIRST_CODE = 5000;

  private final CuFileJob job;
  private final CuFileDriver driver;
  private final int capacity;
  private final List<Piece> round = new ArrayList<>();
  private final List<Piece> rests = new ArrayList<>();

  BatchWorker(CuFileJob job, CuFileDriver driver, int capacity) {
    this.job = job;
    this.driver = driver;
    this.capacity = capacity;
  }

  @Override
  public void run() {
    // The close of the batch ends what a failure has left in it.
    try (CuFileBatch batch = driver.batch(capacity)) {
      while (fill()) {
        round(batch);
        rests.forEach(job::move);
        rests.clear();
      }
    } catch (CuFileException | PosixException e) {
      job.fail(CuFileFailures.of(e, job.call().source(), -1, -1));
    } catch (RuntimeException | Error e) {
      job.fail(e);
    }
  }

  /** Takes pieces for a round; false if none is left. Host memory has no batches. */
  private boolean fill() {
    round.clear();
    Piece piece;
    while (round.size() < capacity && (piece = job.next()) != null) {
      if (job.memory(piece).isPresent()) {
        round.add(piece);
      } else {
        job.move(piece);
      }
    }
    return !round.isEmpty();
  }

  private void round(CuFileBatch batch) {
    Piece first = round.getFirst();
    job.call().throwIfCancelled(first.offset(), first.length());
    List<CuFileRequest> requests = new ArrayList<>();
    for (int i = 0; i < round.size(); i++) {
      requests.add(request(round.get(i), i));
    }
    long start = System.nanoTime();
    batch.submit(requests);
    while (batch.outstanding() > 0) {
      for (CuFileCompletion ended : batch.await(1, WAIT_MILLIS, TimeUnit.MILLISECONDS)) {
        job.call().operation(System.nanoTime() - start);
        end(round.get((int) ended.cookie()), ended);
      }
      // A cancelled or failed transfer ends here; closing the batch waits for its rest.
      job.call().throwIfCancelled(first.offset(), first.length());
      if (job.failed()) {
        return;
      }
    }
  }

  private CuFileRequest request(Piece piece, int place) {
    Optional<DeviceMemory> memory = job.memory(piece);
    if (!piece.aligned()) {
      job.call().counters().staged(piece.length());
    }
    return new CuFileRequest(
        job.writing(),
        job.file(),
        memory.orElseThrow(() -> new IllegalStateException("the buffer is closed")),
        new CuFileRange(piece.offset(), piece.bufferOffset(), piece.length()),
        place);
  }

  private void end(Piece piece, CuFileCompletion ended) {
    if (ended.status() != CuFileCompletion.Status.COMPLETE) {
      throw CuFileFailures.of(failure(ended), job.call().source(), piece.offset(), piece.length());
    }
    Piece rest = job.after(piece, ended.result());
    if (rest.length() > 0) {
      rests.add(rest);
    }
  }

  private static RuntimeException failure(CuFileCompletion ended) {
    String call = "cuFile batch: request " + ended.status();
    long code = -ended.result();
    if (code > FIRST_CODE) {
      return new CuFileException(call, (int) code, 0);
    }
    return new PosixException(call, "", code > 0 ? (int) code : Errno.EIO);
  }
}
