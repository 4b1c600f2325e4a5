package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Asynchronous Event Requests. */
class QueueEventsTest {
  private static final int RETAIN = 1 << 15;
  private static final int CODE = 0x7FF;

  private final RawHost host =
      RawHost.start(SimConfig.builder().workers(0).latencyNanos(0).aerl(1).build());
  private final DmaBuffer log = host.buffer(4096);
  private final MemorySegment request =
      RawHost.sqe(AdminOpcode.ASYNC_EVENT_REQUEST, 0, 0, 0, 0, 0, 0);

  @AfterEach
  void close() {
    host.close();
  }

  private int request() {
    int cid = host.admin.push(request);
    host.admin.ring();
    host.controller.poll();
    return cid;
  }

  private void wrongDoorbell(RawQueue q) {
    q.ringTail(99);
    host.controller.poll();
    q.ring();
    host.controller.poll();
  }

  private void readErrorLog(int flags) {
    host.adminOk(
        RawHost.sqe(
            AdminOpcode.GET_LOG_PAGE,
            0xFFFF_FFFF,
            log.busAddress(0),
            0,
            LogId.ERROR | flags | 15 << 16,
            0,
            0));
  }

  @Test
  void requestsAreHeldUpToTheLimit() {
    request();
    request();
    assertThat(host.admin.peek()).isNull();
    int third = request();
    assertThat(host.admin.poll())
        .returns(third, RawQueue.Completion::cid)
        .returns(StatusCode.ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED.status(), c -> c.status() & CODE);
  }

  @Test
  void abortedRequestsComplete() {
    int cid = request();
    host.admin.push(RawHost.abort(0, cid), 0x500);
    host.admin.ring();
    assertThat(host.next(host.admin))
        .returns(cid, RawQueue.Completion::cid)
        .returns(StatusCode.ABORT_REQUESTED.status(), c -> c.status() & CODE);
    assertThat(host.next(host.admin)).returns(0x500, RawQueue.Completion::cid);
    request();
    request();
    assertThat(host.admin.peek()).as("the limit counts what is outstanding").isNull();
  }

  @Test
  void anEventAnswersARequest() {
    RawQueue q = host.createQueue(1, 8, 8);
    int cid = request();
    wrongDoorbell(q);
    RawQueue.Completion c = host.admin.poll();
    assertThat(c).returns(cid, RawQueue.Completion::cid).returns(0, RawQueue.Completion::status);
    assertThat(new AsyncEvent(c.dw0()))
        .returns(ControllerEvents.TYPE_ERROR, AsyncEvent::type)
        .returns(ControllerEvents.ERROR_INVALID_DOORBELL_VALUE, AsyncEvent::info)
        .returns(LogId.ERROR, AsyncEvent::logPage);
  }

  @Test
  void anEventWaitsForARequest() {
    wrongDoorbell(host.createQueue(1, 8, 8));
    int cid = request();
    host.controller.poll();
    assertThat(host.admin.poll()).returns(cid, RawQueue.Completion::cid);
  }

  @Test
  void aTypeStaysMaskedUntilItsLogIsRead() {
    RawQueue q = host.createQueue(1, 8, 8);
    request();
    wrongDoorbell(q);
    assertThat(host.admin.poll()).isNotNull();
    int second = request();
    wrongDoorbell(q);
    assertThat(host.admin.peek()).as("masked").isNull();
    host.controller.asyncEvents().raise(ControllerEvents.TYPE_SMART, 1, LogId.SMART);
    int third = second;
    host.controller.poll();
    RawQueue.Completion other = host.admin.poll();
    assertThat(other).as("another type is not masked").returns(third, RawQueue.Completion::cid);
    assertThat(new AsyncEvent(other.dw0()).type()).isEqualTo(ControllerEvents.TYPE_SMART);
    int fourth = request();
    readErrorLog(RETAIN);
    host.controller.poll();
    assertThat(host.admin.peek()).as("retained").isNull();
    readErrorLog(0);
    host.controller.poll();
    assertThat(host.admin.poll()).returns(fourth, RawQueue.Completion::cid);
  }

  @Test
  void unknownDoorbellRegistersAreAnotherEvent() {
    request();
    RawQueue q = host.queueMemory(3, 8, 8);
    q.ringTail(1);
    RawQueue.Completion c = host.next(host.admin);
    assertThat(new AsyncEvent(c.dw0()))
        .returns(ControllerEvents.TYPE_ERROR, AsyncEvent::type)
        .returns(ControllerEvents.ERROR_INVALID_DOORBELL_REGISTER, AsyncEvent::info);
  }

  @Test
  void resetDropsRequestsAndEvents() {
    wrongDoorbell(host.createQueue(1, 8, 8));
    host.disable();
    host.enable();
    request();
    request();
    host.controller.poll();
    assertThat(host.admin.peek()).isNull();
    host.disable();
    host.enable();
    request();
    request();
    assertThat(host.admin.peek()).isNull();
    host.controller.asyncEvents().raise(ControllerEvents.TYPE_NOTICE, 0, LogId.CHANGED_NAMESPACES);
    host.controller.poll();
    assertThat(host.admin.poll()).isNotNull();
  }

  @Test
  void resetUnmasks() {
    request();
    wrongDoorbell(host.createQueue(1, 8, 8));
    assertThat(host.admin.poll()).isNotNull();
    host.disable();
    host.enable();
    request();
    wrongDoorbell(host.createQueue(1, 8, 8));
    assertThat(host.admin.poll()).isNotNull();
  }

  @Test
  void whatIsKeptIsBounded() {
    for (int i = 0; i < 100_000; i++) {
      host.controller.asyncEvents().raise(i & 7, i >>> 3 & 0xFF, i & 3);
    }
    int answered = 0;
    for (int i = 0; i < 100; i++) {
      request();
      while (host.admin.poll() != null) {
        answered++;
      }
    }
    // Each type once: the others of the type stay masked. The rest is refused by AERL.
    assertThat(answered).isEqualTo(8 + 90);
  }
}
