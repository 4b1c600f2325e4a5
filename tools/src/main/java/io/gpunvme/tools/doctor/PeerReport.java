package io.gpunvme.tools.doctor;

import io.gpunvme.gpu.queue.Placements;
import io.gpunvme.tools.doctor.PeerStep.Outcome;
import java.util.List;
import java.util.Locale;

/**
 * The result of a {@link PeerCheck}.
 *
 * @param gpu the GPU's name
 * @param ssd the device as it was opened
 * @param steps in the order in which they were done
 * @param placements which placements the two can do together
 * @param arrivals what was seen of data in GPU memory and its completions; empty if that was not
 *     tried, or failed
 */
public record PeerReport(
    String gpu,
    String ssd,
    List<PeerStep> steps,
    Placements placements,
    List<ArrivalCount> arrivals) {
  /** Copies the lists. */
  public PeerReport {
    steps = List.copyOf(steps);
    arrivals = List.copyOf(arrivals);
  }

  /** The result, by name. */
  public enum Verdict {
    /** The GPU rang a doorbell, and the controller carried out the command. */
    GPU_DRIVES_SSD("the GPU can drive this SSD"),
    /** The same with data in host memory; data in GPU memory did not do what it should. */
    ONLY_HOST_DATA(
        "the GPU can drive this SSD with data in host memory; reads into GPU memory failed, as the"
            + " step data-before-completion says. If data came late, give --placement host wherever"
            + " it could go to GPU memory"),
    /** CUDA did not take BAR0. */
    BAR0_NOT_REGISTERED("CUDA does not take this SSD's registers; the CPU can drive it"),
    /** BAR0 was taken, but no command went through. */
    DOORBELL_NOT_HEARD("the GPU's stores do not reach this SSD; the CPU can drive it");

    private final String text;

    Verdict(String text) {
      this.text = text;
    }

    /** One sentence. */
    public String text() {
      return text;
    }

    /** As it is printed: {@code gpu-drives-ssd}. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  /** The result. */
  public Verdict verdict() {
    if (failed(PeerCheck.REGISTER)) {
      return Verdict.BAR0_NOT_REGISTERED;
    }
    if (failed(PeerCheck.RING)) {
      return Verdict.DOORBELL_NOT_HEARD;
    }
    return failed(PeerCheck.ARRIVAL) ? Verdict.ONLY_HOST_DATA : Verdict.GPU_DRIVES_SSD;
  }

  private boolean failed(String name) {
    return steps.stream().anyMatch(s -> s.name().equals(name) && s.outcome() == Outcome.FAILED);
  }
}
