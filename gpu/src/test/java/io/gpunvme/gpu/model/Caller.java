package io.gpunvme.gpu.model;

import io.gpunvme.gpu.model.QueueState.Back;

/**
 * One group of lanes that goes through its program, one operation on shared words a step.
 *
 * <p>With coarse steps it goes on at once where nobody else could tell the difference (Lipton's
 * movers), which leaves far fewer states: stores to a slot, an SQE or a field that nobody else
 * reads or writes at that moment; what follows a CQE that was found, since CQEs stay; and the free
 * bit behind a result that was found, since results stay.
 */
final class Caller {
  private final QueueConfig config;
  private final QueueState q;
  private final Submission submission;
  private final Service service;
  private final Waiting waiting;
  private final LiveRecovery live;

  Caller(QueueConfig config, QueueState q) {
    this.config = config;
    this.q = q;
    this.service = new Service(config, q);
    this.live = new LiveRecovery(config, q, service);
    this.submission = new Submission(config, q, service, live);
    this.waiting = new Waiting(config, q, service, submission, live);
  }

  void start(long[] s, int t) {
    submission.nextOp(s, t, 0);
  }

  /** Behind the recovery. */
  void goOn(long[] s, int t) {
    submission.nextOp(s, t, q.op[t].get(s) + 1);
  }

  Service service() {
    return service;
  }

  LiveRecovery live() {
    return live;
  }

  void steps(long[] from, int t, Steps steps) {
    Pc pc = q.pc(from, t);
    if (pc.recovers()) {
      live.steps(from, t, pc, steps);
      return;
    }
    switch (pc) {
      case TAKE -> submission.take(from, t, steps);
      case MARK -> submission.mark(from, t, steps);
      case DELIVER -> service.deliver(from, t, steps);
      case WAIT -> waiting.look(from, t, steps);
      case ADOPT -> submission.adopt(from, t, steps);
      case SERVE -> submission.serve(from, t, steps);
      case RECOVER, END -> {}
      default -> {
        long[] s = steps.begin(t);
        step(s, t, steps);
        steps.end();
      }
    }
  }

  /** Goes on after a step as far as nobody can tell. */
  void settle(long[] s, int t, Steps steps) {
    while (config.coarse && nobodyCanTell(q.pc(s, t))) {
      if (q.pc(s, t) == Pc.DELIVER) {
        service.deliver(s, t, 0, steps);
      } else {
        step(s, t, steps);
      }
    }
    if (q.pc(s, t) == Pc.AFTERWARDS && q.tail[t].get(s) == 0) {
      step(s, t, steps);
    }
  }

  private static boolean nobodyCanTell(Pc pc) {
    return switch (pc) {
      case WORD, SQE, DOORBELL, DELIVER, CQ_DOORBELL, AGAIN, FREE_BIT -> true;
      default -> false;
    };
  }

  private void step(long[] s, int t, Steps steps) {
    switch (q.pc(s, t)) {
      case WORD -> submission.word(s, t, steps);
      case TICKET -> submission.ticket(s, t, steps);
      case REFUSED -> submission.refused(s, t, steps);
      case SQE -> submission.sqe(s, t, steps);
      case ANNOUNCE -> submission.announce(s, t, steps);
      case HOLD -> submission.hold(s, t, steps);
      case SCAN -> service.scan(s, t, steps);
      case DOORBELL -> service.doorbell(s, t, steps);
      case CLEAR -> service.clearLate(s, t, steps);
      case LOOK -> service.look(s, t, steps);
      case CQ_DOORBELL -> service.cqDoorbell(s, t, steps);
      case LEAVE -> service.leave(s, t, steps);
      case AGAIN -> service.again(s, t, steps);
      case AFTERWARDS -> {
        service.overtaken(s, t, steps);
        back(s, t, steps);
      }
      case FREE_BIT -> waiting.freeBit(s, t, steps);
      case STATUS -> waiting.statusLate(s, t, steps);
      case LAST_TURN -> submission.lastTurn(s, t, steps);
      case LAST_HOLD -> submission.lastHold(s, t, steps);
      default -> throw new AssertionError(q.pc(s, t));
    }
  }

  /** What a holder does after it has left. */
  private void back(long[] s, int t, Steps steps) {
    Back back = Back.values()[q.back[t].get(s)];
    q.back[t].set(s, 0);
    switch (back) {
      case SUBMITTED -> submission.after(s, t, Pc.ANNOUNCE);
      case TAKE -> q.go(s, t, Pc.TAKE);
      case WAIT -> q.go(s, t, Pc.WAIT);
      case SERVE -> q.go(s, t, Pc.SERVE);
      case LAST_TURN -> submission.served(s, t, steps);
    }
  }
}
