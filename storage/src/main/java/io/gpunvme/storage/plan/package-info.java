/**
 * Plans the I/Os for many ranges of a source: aligned, coalesced, cut at the longest transfer,
 * spread over stripe members, before any I/O is done. Pure functions of their input: no I/O, no
 * clock, no threads, so a plan can be printed and tested without a device. Plans are carried out
 * elsewhere. Start with {@code Planner}.
 */
@NullMarked
package io.gpunvme.storage.plan;

import org.jspecify.annotations.NullMarked;
