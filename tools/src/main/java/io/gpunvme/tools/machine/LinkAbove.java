package io.gpunvme.tools.machine;

import io.gpunvme.nvme.pci.PciAddress;
import java.util.Locale;
import java.util.Optional;

/**
 * The link above a function, judged by both of its ends.
 *
 * @param function the one below the link
 * @param speed GT/s that it can be counted on to have: those of now, or the best of both ends where
 *     an idle GPU may have lowered it; 0 if not known
 * @param width lanes of now; 0 if not known
 * @param bestSpeed GT/s that both ends can; 0 if not known
 * @param bestWidth lanes that both ends can; 0 if not known
 * @param state whether it is what it could be
 * @param idle whether it is slower now than {@code speed}
 */
public record LinkAbove(
    MachineFunction function,
    double speed,
    int width,
    double bestSpeed,
    int bestWidth,
    State state,
    boolean idle) {
  /** What a link is, of what it could be. */
  public enum State {
    /** The kernel does not say. */
    UNKNOWN,
    /** As fast and as wide as the function can. */
    FULL,
    /** As the port above it can; the function could do more. */
    LIMITED_BY_PORT,
    /** Slower or narrower than both ends can. */
    DEGRADED;

    /** In lower case, {@code limited_by_port}. */
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  static LinkAbove of(Machine machine, MachineFunction function) {
    PciLink link = function.link();
    Optional<PciLink> port = port(machine, function);
    // The link of a root port is that of the function below it.
    if (function.bridge() && function.parents().isEmpty()) {
      return unknown(function);
    }
    double ownSpeed = link.maxSpeed() > 0 ? link.maxSpeed() : link.speed();
    int ownWidth = link.maxWidth() > 0 ? link.maxWidth() : link.width();
    double bestSpeed =
        Math.min(ownSpeed, port.map(PciLink::maxSpeed).filter(s -> s > 0).orElse(ownSpeed));
    int bestWidth =
        Math.min(ownWidth, port.map(PciLink::maxWidth).filter(w -> w > 0).orElse(ownWidth));
    boolean mayIdle = mayIdle(machine, function);
    double speed = mayIdle || link.speed() == 0 ? bestSpeed : link.speed();
    int width = link.width() > 0 ? link.width() : bestWidth;
    if (speed == 0 || width == 0) {
      return unknown(function);
    }
    State state =
        speed < bestSpeed || width < bestWidth
            ? State.DEGRADED
            : speed < ownSpeed || width < ownWidth ? State.LIMITED_BY_PORT : State.FULL;
    boolean idle = link.speed() > 0 && link.speed() < speed;
    return new LinkAbove(function, speed, width, bestSpeed, bestWidth, state, idle);
  }

  private static LinkAbove unknown(MachineFunction function) {
    return new LinkAbove(function, 0, 0, 0, 0, State.UNKNOWN, false);
  }

  private static Optional<PciLink> port(Machine machine, MachineFunction function) {
    return function.parents().isEmpty()
        ? Optional.empty()
        : machine.find(function.parents().getLast()).map(MachineFunction::link);
  }

  /** GPUs lower the speed of their links when idle; what is above one may follow. */
  private static boolean mayIdle(Machine machine, MachineFunction function) {
    PciAddress own = function.address();
    return function.display()
        || (function.bridge()
            && machine.functions().stream()
                .anyMatch(f -> f.display() && f.parents().contains(own)));
  }

  /** Whether speed and width are known. */
  public boolean known() {
    return state != State.UNKNOWN;
  }

  /** GB/s in one direction, before the headers of packets; 0 if not known. */
  public double gigabytesPerSecond() {
    return PciLink.gigabytesPerSecond(speed, width);
  }

  /** {@code 16GT/s x4}; {@code -} if not known. */
  public String rate() {
    return PciLink.text(speed, width);
  }

  /** The best that both ends can, {@code 16GT/s x16}. */
  public String possible() {
    return PciLink.text(bestSpeed, bestWidth);
  }

  /** The best that the function itself can, {@code 32GT/s x4}. */
  public String best() {
    PciLink link = function.link();
    return PciLink.text(
        link.maxSpeed() > 0 ? link.maxSpeed() : speed,
        link.maxWidth() > 0 ? link.maxWidth() : width);
  }

  /** {@code 16GT/s x4, 7.9 GB/s}, and what is wrong with it. */
  @Override
  public String toString() {
    if (!known()) {
      return "link not known";
    }
    String text =
        rate()
            + String.format(Locale.ROOT, ", %.1f GB/s", gigabytesPerSecond())
            + (idle ? "; idle now" : "");
    return switch (state) {
      case DEGRADED -> text + "; DEGRADED, could be " + possible();
      case LIMITED_BY_PORT -> text + "; its port's best, itself " + best();
      case FULL, UNKNOWN -> text;
    };
  }
}
