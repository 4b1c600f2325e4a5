package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Enabling, disabling, shutting down and resetting the controller (Base 2.0, 3.5 to 3.7). Each
 * holds the locks of all workers, so no command is being executed meanwhile.
 */
final class Transitions {
  private final LongSupplier clock;
  private final Workers workers;
  private final SimConfig config;
  private final DataPointer dataPointer;
  private final QueueAdmin queues;
  private final Namespaces namespaces;
  private final ControllerEvents events;
  private final Interrupts interrupts;
  private final AdminCommands adminCommands;
  private final ControllerStatus status;
  private final FaultPlan faults;

  Transitions(
      SimConfig config,
      LongSupplier clock,
      ControllerStatus status,
      FaultPlan faults,
      Workers workers,
      DataPointer dataPointer,
      QueueAdmin queues,
      Namespaces namespaces,
      ControllerEvents events,
      Interrupts interrupts,
      AdminCommands adminCommands) {
    this.clock = clock;
    this.workers = workers;
    this.config = config;
    this.dataPointer = dataPointer;
    this.queues = queues;
    this.namespaces = namespaces;
    this.events = events;
    this.interrupts = interrupts;
    this.adminCommands = adminCommands;
    this.status = status;
    this.faults = faults;
  }

  /** CC.EN went from 0 to 1: checks what the host has set up and creates the admin queues. */
  void enable(RegisterFile registers) {
    workers.lock();
    try {
      FaultRule fault = faults.onEvent(FaultRule.Trigger.ENABLE);
      long now = clock.getAsLong();
      String problem = status.isReady(now) ? "enabled again before CSTS.RDY was 0" : null;
      if (problem == null) {
        problem = problemWith(registers);
      }
      boolean stuck = problem != null || isStuck(fault);
      status.enable(now, config.readyNanos(), stuck);
      if (problem == null) {
        start(registers);
      } else {
        status.fatal(problem);
      }
      befall(fault);
    } finally {
      workers.unlock();
    }
  }

  private void start(RegisterFile registers) {
    Cc cc = registers.cc();
    dataPointer.pageBytes(DmaSpace.PAGE << cc.get(Cc.MPS));
    queues.createAdmin(registers);
  }

  /** What the host did wrong before it set CC.EN, in words; null if nothing. */
  private static @Nullable String problemWith(RegisterFile registers) {
    Cap cap = registers.cap();
    Cc cc = registers.cc();
    Aqa aqa = registers.aqa();
    if (cc.get(Cc.MPS) < cap.get(Cap.MPSMIN) || cc.get(Cc.MPS) > cap.get(Cap.MPSMAX)) {
      return "CC.MPS " + cc.get(Cc.MPS) + " is not in CAP's range";
    }
    long offset = (DmaSpace.PAGE << cc.get(Cc.MPS)) - 1;
    if (cc.get(Cc.CSS) != Cc.CSS_NVM) {
      return "CC.CSS " + cc.get(Cc.CSS) + " is not supported";
    }
    if (cc.get(Cc.AMS) != Cc.AMS_ROUND_ROBIN) {
      return "CC.AMS " + cc.get(Cc.AMS) + " is not supported";
    }
    if (aqa.get(Aqa.ASQS) == 0 || aqa.get(Aqa.ACQS) == 0) {
      return "AQA has an admin queue of one entry";
    }
    if (registers.asq() == 0 || registers.acq() == 0) {
      return "ASQ or ACQ is 0";
    }
    if (((registers.asq() | registers.acq()) & offset) != 0) {
      return "ASQ or ACQ is not aligned to a memory page";
    }
    return null;
  }

  /** CC.EN went from 1 to 0: forgets queues and commands. AQA, ASQ and ACQ stay. */
  void disable() {
    workers.lock();
    try {
      FaultRule fault = faults.onEvent(FaultRule.Trigger.DISABLE);
      forget();
      status.disable(clock.getAsLong(), config.readyNanos(), isStuck(fault));
      befall(fault);
    } finally {
      workers.unlock();
    }
  }

  /** CC.SHN became non-zero: fetches no more and makes everything written durable. */
  void shutDown() {
    workers.lock();
    try {
      FaultRule fault = faults.onEvent(FaultRule.Trigger.SHUTDOWN);
      namespaces.flush();
      status.shutdown(clock.getAsLong(), config.shutdownNanos());
      befall(fault);
    } finally {
      workers.unlock();
    }
  }

  /** Power-on state. */
  void reset() {
    workers.lock();
    try {
      forget();
      status.reset();
    } finally {
      workers.unlock();
    }
  }

  private void forget() {
    queues.deleteAll();
    events.reset();
    interrupts.reset();
    adminCommands.reset();
  }

  private static boolean isStuck(@Nullable FaultRule fault) {
    return fault != null && fault.action() == FaultRule.Action.READY_STUCK;
  }

  private void befall(@Nullable FaultRule fault) {
    if (fault != null) {
      status.befall(fault);
    }
  }
}
