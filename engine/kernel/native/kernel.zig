//! The facts that a plan asks of a text, as the bits of one word a row: a Polars expression plugin (ABI 0.1).
//!
//! Polars calls it without Python's lock and from several threads. It knows no check: it runs a program, whose every index is checked
//! when it is read. Texts are reached through slices, so a mistake fails a safety check and not the process: guard.c leads back to the
//! entry, all rows of the batch get the bit `ASK`, and Python decides them.

const std = @import("std");

extern fn assay_guarded(run: *const fn (*anyopaque) callconv(.c) void, work: *anyopaque) c_int;
extern fn assay_escape() noreturn;

const gpa = std.heap.c_allocator;

const ASK: u64 = 1 << 62;
const NULL: u64 = 1 << 63;
const FACTS = 62;

var stopped = std.atomic.Value(bool).init(false);
var message: [128:0]u8 = @splat(0);

pub const panic = std.debug.FullPanic(fail);
fn fail(why: []const u8, _: ?usize) noreturn {
    tell(why);
    stopped.store(true, .release);
    assay_escape();
}
fn tell(why: []const u8) void {
    const n = @min(why.len, message.len);
    @memcpy(message[0..n], why[0..n]);
    message[n] = 0;
}
fn allocated(memory: std.mem.Allocator, comptime T: type, n: usize) []T {
    return memory.alloc(T, n) catch @panic("out of memory");
}

// ── bytes side by side ─────────────────────────────────────────────────────────────────────────────────────────────────

const WIDE = 32;
const FAR = 128; // bytes that are looked at together where little is expected
const Wide = @Vector(WIDE, u8);

inline fn wide(text: []const u8, at: usize) Wide {
    return text[at..][0..WIDE].*;
}
inline fn all(byte: u8) Wide {
    return @splat(byte);
}
inline fn marks(where: anytype) @Int(.unsigned, @typeInfo(@TypeOf(where)).vector.len) {
    return @bitCast(where);
}

// ── programs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A text of bytes to find: `byte | mask` must equal `want`. Places that are rare in usual text are compared first.
const Phrase = struct { want: []const u8, mask: []const u8, rare: [3]usize, bit: u6 };

/// Bytes at which to stop, as ranges; the bytes between lead from a group of states back into the group.
const Stops = struct { first: [4]u8, span: [4]u8, ranges: usize, state: u16 };

const LOST = 0;
const FOUND = 1;
const BEYOND = 0xFFFF;
const Table = [1 << 16]u16;

const Automaton = struct {
    bit: u6,
    start: u16,
    classes: usize,
    classifier: Classifier,
    next: []const u16, // by state and class
    at_end: []const u8,
    needs: []const Phrase, // each match contains one of them …
    reach: usize, // … and has at most so many characters, unless it is 0
    within: []const u16, // by the class of a character: the state behind it, if no match begins before it
    stops: []const Stops,
    stops_of: []const u8, // by state: 0, or the number of its stops from 1
    pair: []const Stops, // each match has bytes of both beside each other; none, or two with as many ranges
    is_dense: bool,
    by_byte: ?*const Table, // by state << 8 | byte, as state << 8; BEYOND where a character beyond ASCII begins
    by_class: ?*const Table, // by state << 8 | class of the program

    inline fn step(self: *const Automaton, state: u16, code: u32) u16 {
        return self.next[@as(usize, state) * self.classes + self.classifier.of(code)];
    }
    /// The state behind the character at a place, and the bytes that it has.
    inline fn after(self: *const Automaton, state: u16, text: []const u8, i: usize) struct { state: u16, size: usize } {
        if (self.by_byte) |table| {
            const known = table[state << 8 | text[i]];
            if (known != BEYOND) return .{ .state = known >> 8, .size = 1 };
        }
        const c = characterAt(text, i);
        return .{ .state = self.step(state, c.code), .size = c.size };
    }
};

/// Classes of code points: for each 128 of them a page, equal pages once.
const Classifier = struct {
    page_of: []const u16,
    pages: []const u8,

    inline fn of(self: *const Classifier, code: u32) u8 {
        return self.pages[@as(usize, self.page_of[code >> 7]) << 7 | (code & 127)];
    }
};

const Bound = struct { is_least: bool, size: usize, bit: u6 };
const Key = struct { name: []const u8, bit: u6 };

const Program = struct {
    digest: [16]u8,
    arena: std.heap.ArenaAllocator, // of all that it has
    holders: std.atomic.Value(u32), // calls that run it, and the list of the kept
    phrases: []const Phrase,
    automata: []const Automaton,
    classifier: ?Classifier, // of texts beyond ASCII, for all dense automata
    bounds: []const Bound,
    keys: []const Key,
    reads_json: bool,
    valid: ?u6,
    object: ?u6,
    most_digits: usize, // of a whole number; 0 for no limit
    asks_dotted: bool, // of a text with U+0130, whose lower case is two characters
    asks_kelvin: bool, // of one with U+212A, whose lower case is a k
    has_dense: bool,
    needs_size: bool, // in code points
};

fn need(holds_true: bool) void {
    if (!holds_true) @panic("a damaged program");
}

/// Reads a program that is kept: what it returns are views.
const Reader = struct {
    rest: []const u8,
    memory: std.mem.Allocator,

    fn take(self: *Reader, n: usize) []const u8 {
        const taken = self.rest[0..n];
        self.rest = self.rest[std.mem.alignForward(usize, n, 4)..];
        return taken;
    }
    fn number(self: *Reader) u32 {
        return std.mem.readInt(u32, self.take(4)[0..4], .little);
    }
    fn count(self: *Reader, most: usize) usize {
        const n = self.number();
        need(n <= most);
        return n;
    }
    fn bit(self: *Reader) u6 {
        return @intCast(self.count(FACTS - 1));
    }
    fn maybe(self: *Reader) ?u6 {
        const n = self.count(FACTS);
        return if (n == FACTS) null else @intCast(n);
    }
    fn pairs(self: *Reader, n: usize) []const u16 {
        return @alignCast(std.mem.bytesAsSlice(u16, self.take(n * 2)));
    }
    fn phrases(self: *Reader, most: usize) []Phrase {
        const out = allocated(self.memory, Phrase, self.count(most));
        for (out) |*phrase| {
            const size = self.number();
            const bit_of = self.bit();
            const rare = [3]usize{ self.number(), self.number(), self.number() };
            need(size == 0 or @max(rare[0], rare[1], rare[2]) < size);
            phrase.* = .{ .bit = bit_of, .rare = rare, .want = self.take(size), .mask = self.take(size) };
        }
        return out;
    }
    fn classifier(self: *Reader, classes: usize) Classifier {
        const n = self.count(0x110000 / 128);
        const c = Classifier{ .page_of = self.pairs(0x110000 / 128), .pages = self.take(n * 128) };
        for (c.page_of) |page| need(page < n);
        for (c.pages) |class| need(class < classes);
        return c;
    }
    fn ranges(self: *Reader, most: usize, states: usize) []Stops {
        const out = allocated(self.memory, Stops, self.count(most));
        for (out) |*each| each.* = .{ .first = self.take(4)[0..4].*, .span = self.take(4)[0..4].*, .ranges = self.count(4), .state = @intCast(self.count(states - 1)) };
        return out;
    }
    fn automaton(self: *Reader) Automaton {
        const bit_of = self.bit();
        const states = self.count(1000);
        const classes = self.count(256);
        const start = self.count(states);
        const is_dense = self.number() != 0;
        need(states >= 2 and start < states and !(is_dense and states >= 255));
        const needs = self.phrases(16);
        const reach = self.count(1000);
        const kinds = self.classifier(classes);
        const within = self.pairs(classes);
        for (within) |state| need(state < states);
        const next = self.pairs(states * classes);
        for (next) |state| need(state < states);
        const at_end = self.take(states);
        for (at_end) |is| need(is <= 1);
        const stops = self.ranges(254, states);
        for (stops) |each| {
            for (each.first[0..each.ranges], each.span[0..each.ranges]) |first, span| {
                const last = @as(usize, first) + span;
                need(last < 0x80 or (first >= 0xC0 and last <= 0xFF)); // never within a character
            }
        }
        const stops_of = self.take(states);
        for (stops_of) |n| need(n <= stops.len);
        const pair = self.ranges(2, states);
        need(pair.len == 0 or (pair.len == 2 and pair[0].ranges > 0 and pair[0].ranges == pair[1].ranges));
        var a = Automaton{ .bit = bit_of, .start = @intCast(start), .classes = classes, .classifier = kinds, .next = next, .at_end = at_end, .needs = needs, .reach = reach, .within = within, .stops = stops, .stops_of = stops_of, .pair = pair, .is_dense = is_dense, .by_byte = null, .by_class = null };
        if (states >= 255 or reach > 0) return a;
        const table = &allocated(self.memory, Table, 1)[0];
        for (0..states) |state| for (0..256) |byte| {
            table[state << 8 | byte] = if (byte >= 128) BEYOND else a.step(@intCast(state), @intCast(byte)) << 8;
        };
        a.by_byte = table;
        return a;
    }
    /// The table of a dense automaton by the classes of the program, of which each lies within a class of the automaton.
    fn byClass(self: *Reader, a: *const Automaton, classes: usize) *const Table {
        const own = self.take(classes);
        for (own) |class| need(class < a.classes);
        const table = &allocated(self.memory, Table, 1)[0];
        for (0..a.at_end.len) |state| for (own, 0..) |class, i| {
            table[state << 8 | i] = a.next[state * a.classes + class] << 8;
        };
        return table;
    }
};

fn readProgram(written: []const u8, digest: [16]u8) *Program {
    var arena = std.heap.ArenaAllocator.init(std.heap.page_allocator); // the system gets back what is let go
    const memory = arena.allocator();
    const own: []u8 = std.mem.sliceAsBytes(allocated(memory, u32, written.len / 4 + 1))[0..written.len];
    @memcpy(own, written);
    var r = Reader{ .rest = own, .memory = memory };
    const p = &allocated(memory, Program, 1)[0]; // its fields are read in the order in which they are written
    p.* = .{ .digest = digest, .arena = undefined, .holders = .init(1), .reads_json = r.number() != 0, .valid = r.maybe(), .object = r.maybe(), .most_digits = r.number(), .asks_dotted = r.number() != 0, .asks_kelvin = r.number() != 0, .phrases = r.phrases(64), .bounds = &.{}, .keys = &.{}, .automata = &.{}, .classifier = null, .has_dense = false, .needs_size = false };
    const bounds = allocated(memory, Bound, r.count(64));
    for (bounds) |*bound| bound.* = .{ .is_least = r.number() != 0, .size = r.number(), .bit = r.bit() };
    const keys = allocated(memory, Key, r.count(16));
    for (keys) |*key| {
        const n = r.number();
        key.* = .{ .bit = r.bit(), .name = r.take(n) };
    }
    const automata = allocated(memory, Automaton, r.count(64));
    for (automata) |*a| a.* = r.automaton();
    const classes = r.count(256);
    if (classes > 0) p.classifier = r.classifier(classes);
    for (automata) |*a| if (a.is_dense) {
        p.has_dense = true;
        if (classes > 0) a.by_class = r.byClass(a, classes);
    };
    p.bounds, p.keys, p.automata = .{ bounds, keys, automata };
    p.needs_size = p.has_dense or p.asks_dotted or p.asks_kelvin or bounds.len > 0;
    p.arena = arena;
    return p;
}

var programs: [256]?*Program = @splat(null); // the first read leaves first: each call brings its program, which is read again
var newest: u8 = 0;
var is_locked = std.atomic.Value(bool).init(false); // nothing that is done under the lock can fail a check

/// The kept program of a digest, else `fresh`, which is kept from here on; the caller lets it go.
fn held(digest: *const [16]u8, fresh: ?*Program) ?*Program {
    while (is_locked.swap(true, .acquire)) std.Thread.yield() catch {};
    defer is_locked.store(false, .release);
    const p = for (&programs) |each| {
        if (each) |known| if (std.mem.eql(u8, &known.digest, digest)) break known;
    } else fresh orelse return null;
    _ = p.holders.fetchAdd(1, .monotonic);
    if (p == fresh) {
        newest +%= 1;
        if (programs[newest]) |oldest| letGo(oldest);
        programs[newest] = p;
    } else if (fresh) |late| letGo(late); // two threads have read one program
    return p;
}
fn letGo(p: *Program) void {
    var arena = p.arena; // the program is in it, too
    if (p.holders.fetchSub(1, .acq_rel) == 1) arena.deinit();
}

/// The program within the arguments that Polars hands on, read if it is not kept; the caller lets it go.
fn programIn(given: []const u8) ?*Program {
    const mark = std.mem.find(u8, given, "ASSAYPRG") orelse return null;
    const rest = given[mark + 8 ..];
    const written = rest[20..][0..std.mem.readInt(u32, rest[16..20], .little)];
    return held(rest[0..16], null) orelse held(rest[0..16], readProgram(written, rest[0..16].*));
}

// ── phrases and lengths ────────────────────────────────────────────────────────────────────────────────────────────────

inline fn isAt(text: []const u8, at: usize, phrase: *const Phrase) bool {
    for (text[at..][0..phrase.want.len], phrase.want, phrase.mask) |byte, want, mask| if (byte | mask != want) return false;
    return true;
}

fn contains(text: []const u8, phrase: *const Phrase) bool {
    return find(text, phrase) != null;
}
fn find(text: []const u8, phrase: *const Phrase) ?usize {
    const size = phrase.want.len;
    if (size == 0) return 0;
    if (text.len < size) return null;
    const n = text.len - size + 1; // places where it may begin
    if (n < WIDE) return for (0..n) |i| {
        if (isAt(text, i, phrase)) break i;
    } else null;
    const rare = [3]Byte{ Byte.of(phrase, 0), Byte.of(phrase, 1), Byte.of(phrase, 2) };
    const bytes = [3][]const u8{ text[phrase.rare[0]..][0..n], text[phrase.rare[1]..][0..n], text[phrase.rare[2]..][0..n] };
    var i: usize = 0;
    // most texts lack most phrases
    while (i + FAR <= n) : (i += FAR) if (findAmong(FAR, text, i, phrase, &rare, &bytes)) |at| return at;
    while (i < n) : (i += WIDE) if (findAmong(WIDE, text, @min(i, n - WIDE), phrase, &rare, &bytes)) |at| return at;
    return null;
}

/// The first place of a phrase among as many as are compared side by side.
inline fn findAmong(comptime size: usize, text: []const u8, from: usize, phrase: *const Phrase, rare: *const [3]Byte, bytes: *const [3][]const u8) ?usize {
    var are = rare[0].is(size, bytes[0][from..][0..size]);
    inline for (1..3) |k| are = are & rare[k].is(size, bytes[k][from..][0..size]);
    if (!@reduce(.Or, are)) return null;
    var left = marks(are);
    while (left != 0) : (left &= left - 1) if (isAt(text, from + @ctz(left), phrase)) return from + @ctz(left);
    return null;
}

const Byte = struct {
    want: u8,
    mask: u8,

    inline fn of(phrase: *const Phrase, which: usize) Byte {
        return .{ .want = phrase.want[phrase.rare[which]], .mask = phrase.mask[phrase.rare[which]] };
    }
    inline fn is(self: *const Byte, comptime size: usize, bytes: *const [size]u8) @Vector(size, bool) {
        return (@as(@Vector(size, u8), bytes.*) | @as(@Vector(size, u8), @splat(self.mask))) == @as(@Vector(size, u8), @splat(self.want));
    }
};

const DOTTED_I = Phrase{ .want = "\u{130}", .mask = &.{ 0, 0 }, .rare = .{ 0, 1, 1 }, .bit = 0 };
const KELVIN = Phrase{ .want = "\u{212A}", .mask = &.{ 0, 0, 0 }, .rare = .{ 1, 2, 0 }, .bit = 0 };

fn codePoints(text: []const u8) usize {
    const top: @Vector(FAR, u8) = @splat(0x80);
    var inner: usize = 0; // bytes that begin no character
    var i: usize = 0;
    while (i + FAR <= text.len) : (i += FAR) {
        const bytes: @Vector(FAR, u8) = text[i..][0..FAR].*;
        if (@reduce(.Or, bytes >= top)) inner += @popCount(marks((bytes & @as(@Vector(FAR, u8), @splat(0xC0))) == top));
    }
    while (i + WIDE <= text.len) : (i += WIDE) inner += @popCount(marks((wide(text, i) & all(0xC0)) == all(0x80)));
    for (text[i..]) |byte| inner += @intFromBool(byte & 0xC0 == 0x80);
    return text.len - inner;
}

// ── patterns ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const Character = struct { code: u32, size: usize };

inline fn low(byte: u8) u32 {
    return byte & 0x3F;
}
inline fn characterAt(text: []const u8, i: usize) Character {
    const lead: u32 = text[i];
    if (lead < 0x80) return .{ .code = lead, .size = 1 };
    if (lead < 0xE0) return .{ .code = (lead & 0x1F) << 6 | low(text[i + 1]), .size = 2 };
    if (lead < 0xF0) return .{ .code = (lead & 0x0F) << 12 | low(text[i + 1]) << 6 | low(text[i + 2]), .size = 3 };
    const code = (lead & 0x07) << 18 | low(text[i + 1]) << 12 | low(text[i + 2]) << 6 | low(text[i + 3]);
    return .{ .code = @min(code, 0x10FFFF), .size = 4 };
}

/// Where the character begins that ends before a place.
inline fn before(text: []const u8, end: usize) usize {
    var at = end - 1;
    while (at > 0 and text[at] & 0xC0 == 0x80) at -= 1;
    return at;
}

inline fn isStop(bytes: Wide, stops: *const Stops, comptime n: usize) @Vector(WIDE, bool) {
    var is = (bytes -% all(stops.first[0])) <= all(stops.span[0]);
    inline for (1..n) |k| is = is | ((bytes -% all(stops.first[k])) <= all(stops.span[k]));
    return is;
}
inline fn nextStop(text: []const u8, from: usize, stops: *const Stops) usize {
    var i = from;
    switch (stops.ranges) {
        0 => i = text.len,
        inline 1...4 => |n| {
            while (i + WIDE <= text.len) : (i += WIDE) {
                const found = marks(isStop(wide(text, i), stops, n));
                if (found != 0) return i + @ctz(found);
            }
            while (i < text.len) : (i += 1) inline for (0..n) |k| if (text[i] -% stops.first[k] <= stops.span[k]) return i;
        },
        else => unreachable,
    }
    return i;
}
fn mayHavePair(text: []const u8, pair: []const Stops) bool {
    if (pair.len == 0 or text.len <= WIDE) return true;
    const last = text.len - WIDE - 1;
    switch (pair[0].ranges) {
        inline 1...4 => |n| {
            var i: usize = 0;
            while (true) : (i = @min(i + WIDE, last)) {
                if (@reduce(.Or, isStop(wide(text, i), &pair[0], n) & isStop(wide(text, i + 1), &pair[1], n))) return true;
                if (i == last) return false;
            }
        },
        else => unreachable,
    }
}

fn mayMatch(a: *const Automaton, text: []const u8) bool {
    for (a.needs) |*phrase| if (contains(text, phrase)) return true;
    return a.needs.len == 0;
}

/// Whether there is a match around one of the phrases that each match needs.
fn matchesNear(a: *const Automaton, text: []const u8) bool {
    for (a.needs) |*phrase| {
        var state: u16 = LOST;
        var i: usize = 0; // the text is read up to here
        var from: usize = 0;
        while (find(text[from..], phrase)) |found| {
            const at = from + found;
            from = at + 1;
            var first = at;
            var n: usize = 0;
            while (n <= a.reach and first > 0) : (n += 1) first = before(text, first);
            if (first == 0 and i == 0) {
                state = a.start;
            } else if (first >= i) {
                const c = characterAt(text, first);
                state = a.within[a.classifier.of(c.code)];
                i = first + c.size;
            }
            var left = a.reach + 1; // a match ends within its characters, and the one behind it may decide it
            while (i < text.len and left > 0 and state > FOUND) {
                left -= @intFromBool(i >= at);
                const c = characterAt(text, i);
                state = a.step(state, c.code);
                i += c.size;
            }
            if (state == FOUND or (i >= text.len and a.at_end[state] != 0)) return true;
        }
    }
    return false;
}

/// Run an automaton from the start of a text, character by character, and past what leads nowhere.
fn matchesFromStart(a: *const Automaton, text: []const u8) bool {
    var state = a.start;
    var i: usize = 0;
    while (i < text.len and state > FOUND) {
        const number = a.stops_of[state];
        if (number != 0) {
            const stops = &a.stops[number - 1];
            const to = nextStop(text, i, stops);
            if (to > i) { // the last character before tells the state: all others led back into the group
                state = a.after(stops.state, text, before(text, to)).state;
                i = to;
                continue;
            }
        }
        const then = a.after(state, text, i);
        state = then.state;
        i += then.size;
    }
    return a.at_end[state] != 0;
}

const BLOCK = 128;

/// Texts of a block, and their rows in it.
const Texts = struct {
    list: [BLOCK][]const u8 = undefined,
    rows: [BLOCK]u8 = undefined,
    n: usize = 0,

    inline fn add(self: *Texts, text: []const u8, row: u8) void {
        self.list[self.n], self.rows[self.n] = .{ text, row };
        self.n += 1;
    }
};

const SIDE = 8;
const Track = struct { row: usize, rest: []const u8, state: u16 };

/// Run a dense automaton on several texts in turn: the loads of one hide the waits of the others. `table` is by byte or by class;
/// a byte of it that leads BEYOND does not occur in these texts.
fn matchDense(a: *const Automaton, table: *const Table, texts: *const Texts, words: []u64) void {
    var tracks: [SIDE]Track = undefined;
    var n: usize = 0;
    var next: usize = 0;
    while (true) {
        while (n < SIDE and next < texts.n) : (next += 1) {
            tracks[n] = .{ .row = texts.rows[next], .rest = texts.list[next], .state = a.start };
            n += 1;
        }
        if (n == 0) return;
        var steps: usize = 64;
        for (tracks[0..n]) |track| steps = @min(steps, track.rest.len);
        if (n == SIDE) {
            var texts_here: [SIDE][]const u8 = undefined;
            var states: [SIDE]u16 = undefined;
            inline for (0..SIDE) |k| {
                texts_here[k], states[k] = .{ tracks[k].rest[0..steps], tracks[k].state << 8 };
            }
            for (0..steps) |i| inline for (0..SIDE) |k| {
                states[k] = table[states[k] | texts_here[k][i]];
            };
            inline for (0..SIDE) |k| tracks[k].state = states[k] >> 8;
        } else for (tracks[0..n]) |*track| {
            var state = track.state << 8;
            for (track.rest[0..steps]) |byte| state = table[state | byte];
            track.state = state >> 8;
        }
        var k: usize = 0;
        while (k < n) {
            const track = &tracks[k];
            track.rest = track.rest[steps..];
            if (track.state <= FOUND or track.rest.len == 0) {
                words[track.row] |= @as(u64, a.at_end[track.state]) << a.bit;
                n -= 1;
                tracks[k] = tracks[n];
            } else k += 1;
        }
    }
}

// ── JSON, as json.loads reads it ───────────────────────────────────────────────────────────────────────────────────────

const DEPTH = 500;
const IN_STRINGS = Stops{ .first = .{ '"', '\\', 0, 0 }, .span = .{ 0, 0, 31, 0 }, .ranges = 3, .state = LOST };

const Json = struct {
    program: *const Program,
    text: []const u8,
    at: usize = 0,
    keys: u64 = 0,
    is_object: bool = false,
    has_escaped_key: bool = false,

    fn blank(self: *Json) void {
        while (self.at < self.text.len) : (self.at += 1) switch (self.text[self.at]) {
            ' ', '\t', '\n', '\r' => {},
            else => return,
        };
    }
    /// Whether a byte comes next, which is then behind.
    inline fn past(self: *Json, byte: u8) bool {
        const is_next = self.at < self.text.len and self.text[self.at] == byte;
        if (is_next) self.at += 1;
        return is_next;
    }
    fn word(self: *Json, expected: []const u8) bool {
        const is_next = std.mem.startsWith(u8, self.text[self.at..], expected);
        if (is_next) self.at += expected.len;
        return is_next;
    }
    fn digits(self: *Json) usize {
        const from = self.at;
        while (self.at < self.text.len and std.ascii.isDigit(self.text[self.at])) self.at += 1;
        return self.at - from;
    }
    /// From behind the opening quote to behind the closing one; null if it is none, else whether it has an escape.
    fn string(self: *Json) ?bool {
        const t = self.text;
        var has_escape = false;
        while (true) {
            self.at = nextStop(t, self.at, &IN_STRINGS);
            if (self.past('"')) return has_escape;
            if (!self.past('\\') or self.at == t.len) return null;
            has_escape = true;
            switch (t[self.at]) {
                '"', '\\', '/', 'b', 'f', 'n', 'r', 't' => self.at += 1,
                'u' => {
                    if (self.at + 5 > t.len) return null;
                    for (t[self.at + 1 ..][0..4]) |digit| if (!std.ascii.isHex(digit)) return null;
                    self.at += 5;
                },
                else => return null,
            }
        }
    }
    // json.loads ends a number before what cannot continue it, and nothing that may come behind a value begins like that
    fn number(self: *Json) bool {
        if (self.past('-') and self.word("Infinity")) return true;
        const first = self.at;
        const whole = self.digits();
        if (whole == 0 or (whole > 1 and self.text[first] == '0')) return false;
        const end = self.at;
        if (self.past('.') and self.digits() == 0) return false;
        if (self.past('e') or self.past('E')) {
            if (!self.past('-')) _ = self.past('+');
            if (self.digits() == 0) return false;
        }
        return self.at > end or self.program.most_digits == 0 or whole <= self.program.most_digits;
    }
    fn key(self: *Json, depth: usize) bool {
        if (!self.past('"')) return false;
        const from = self.at;
        const has_escape = self.string() orelse return false;
        if (depth == 1) {
            self.has_escaped_key = self.has_escaped_key or has_escape;
            for (self.program.keys) |known| if (std.mem.eql(u8, known.name, self.text[from .. self.at - 1])) {
                self.keys |= @as(u64, 1) << known.bit;
            };
        }
        self.blank();
        const has_colon = self.past(':');
        self.blank();
        return has_colon;
    }
    fn simple(self: *Json) bool {
        if (self.past('"')) return self.string() != null;
        if (self.at < self.text.len and self.text[self.at] <= '9') return self.number();
        return self.word("true") or self.word("false") or self.word("null") or self.word("NaN") or self.word("Infinity");
    }
    fn closes(self: *Json, is_object: bool) bool {
        return if (is_object) self.past('}') else self.past(']');
    }
    fn isValid(self: *Json) bool {
        var in_object: [DEPTH]bool = undefined;
        var depth: usize = 0;
        self.blank();
        while (true) {
            const opens_object = self.past('{');
            if (opens_object or self.past('[')) {
                if (depth == DEPTH) return false;
                if (depth == 0) self.is_object = opens_object;
                self.blank();
                if (!self.closes(opens_object)) {
                    in_object[depth] = opens_object;
                    depth += 1;
                    if (opens_object and !self.key(depth)) return false;
                    continue;
                }
            } else if (!self.simple()) return false;
            while (true) { // behind a value
                self.blank();
                if (depth == 0) return self.at == self.text.len;
                if (self.past(',')) {
                    self.blank();
                    if (in_object[depth - 1] and !self.key(depth)) return false;
                    break;
                }
                if (!self.closes(in_object[depth - 1])) return false;
                depth -= 1;
            }
        }
    }
};

// ── rows ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

inline fn flag(is: bool, bit: u6) u64 {
    return @as(u64, @intFromBool(is)) << bit;
}

fn factsOf(p: *const Program, text: []const u8, size: usize) u64 {
    var word: u64 = 0;
    for (p.bounds) |bound| word |= flag(if (bound.is_least) size >= bound.size else size <= bound.size, bound.bit);
    if (size != text.len and ((p.asks_dotted and contains(text, &DOTTED_I)) or (p.asks_kelvin and contains(text, &KELVIN)))) word |= ASK;
    for (p.phrases) |*phrase| word |= flag(contains(text, phrase), phrase.bit);
    for (p.automata) |*a| {
        if (a.reach > 0) {
            word |= flag(matchesNear(a, text), a.bit);
        } else if (!a.is_dense and mayMatch(a, text) and mayHavePair(text, a.pair)) word |= flag(matchesFromStart(a, text), a.bit);
    }
    if (p.reads_json) {
        var json = Json{ .program = p, .text = text };
        if (json.isValid()) {
            if (p.valid) |bit| word |= flag(true, bit);
            if (json.is_object) {
                if (p.object) |bit| word |= flag(true, bit);
                word |= json.keys;
                if (json.has_escaped_key and p.keys.len > 0) word |= ASK;
            }
        }
    }
    return word;
}

const View = extern struct {
    len: u32,
    rest: [12]u8,

    inline fn text(self: *const View, buffers: []const []const u8) []const u8 {
        if (self.len <= 12) return self.rest[0..self.len];
        const buffer = buffers[std.mem.readInt(u32, self.rest[4..8], .little)];
        return buffer[std.mem.readInt(u32, self.rest[8..12], .little)..][0..self.len];
    }
};

/// The characters of a text as classes of the program.
fn classesOf(classifier: *const Classifier, text: []const u8, arena: std.mem.Allocator) []const u8 {
    const out = arena.alloc(u8, text.len) catch @panic("out of memory");
    const ascii = classifier.pages[@as(usize, classifier.page_of[0]) << 7 ..][0..128];
    var n: usize = 0;
    var i: usize = 0;
    while (i < text.len) : (n += 1) {
        if (text[i] < 0x80) {
            out[n] = ascii[text[i]];
            i += 1;
            continue;
        }
        const c = characterAt(text, i);
        out[n] = classifier.of(c.code);
        i += c.size;
    }
    return out[0..n];
}

fn scan(p: *const Program, array: *const ArrowArray, words: []u64) void {
    const rows: usize = @intCast(array.length);
    if (rows == 0) return;
    const offset: usize = @intCast(array.offset);
    const n: usize = @intCast(array.n_buffers);
    const views = @as([*]const View, @ptrCast(@alignCast(array.buffers[1].?)))[offset..][0..rows];
    const buffers = allocated(gpa, []const u8, n - 3);
    defer gpa.free(buffers);
    if (n > 3) {
        const sizes = @as([*]const i64, @ptrCast(@alignCast(array.buffers[n - 1].?)))[0 .. n - 3];
        for (buffers, sizes, array.buffers[2 .. n - 1]) |*buffer, size, at|
            buffer.* = if (at) |start| @as([*]const u8, @ptrCast(start))[0..@intCast(size)] else "";
    }
    const validity: ?[]const u8 = if (array.buffers[0]) |bits| @as([*]const u8, @ptrCast(bits))[0 .. (offset + rows + 7) / 8] else null;
    var arena = std.heap.ArenaAllocator.init(gpa); // of a block's classes
    defer arena.deinit();
    var from: usize = 0;
    while (from < rows) : (from += BLOCK) {
        const m = @min(BLOCK, rows - from);
        var plain = Texts{}; // in ASCII
        var beyond = Texts{};
        for (views[from..][0..m], words[from..][0..m], 0..) |*view, *word, i| {
            const row = offset + from + i;
            if (validity) |bits| if (bits[row >> 3] >> @intCast(row & 7) & 1 == 0) {
                word.* = NULL;
                continue;
            };
            const text = view.text(buffers);
            const size = if (p.needs_size) codePoints(text) else text.len;
            word.* = factsOf(p, text, size);
            if (size == text.len) plain.add(text, @intCast(i)) else beyond.add(text, @intCast(i));
        }
        if (!p.has_dense) continue;
        _ = arena.reset(.retain_capacity);
        var in_classes: [BLOCK][]const u8 = @splat(&.{});
        const here = words[from..][0..m];
        for (p.automata) |*a| if (a.is_dense) {
            var kept = Texts{};
            for (plain.list[0..plain.n], plain.rows[0..plain.n]) |text, row| if (mayHavePair(text, a.pair)) kept.add(text, row);
            matchDense(a, a.by_byte.?, &kept, here);
            kept.n = 0;
            for (beyond.list[0..beyond.n], beyond.rows[0..beyond.n], in_classes[0..beyond.n]) |text, row, *own| if (mayHavePair(text, a.pair)) {
                if (a.by_class == null) {
                    here[row] |= flag(matchesFromStart(a, text), a.bit);
                    continue;
                }
                if (own.len == 0) own.* = classesOf(&p.classifier.?, text, arena.allocator());
                kept.add(own.*, row);
            };
            if (a.by_class) |table| matchDense(a, table, &kept, here);
        };
    }
}

// ── the interface of C ─────────────────────────────────────────────────────────────────────────────────────────────────

const ArrowSchema = extern struct { format: [*:0]const u8, name: ?[*:0]const u8, metadata: ?[*]const u8, flags: i64, n_children: i64, children: ?*?*ArrowSchema, dictionary: ?*ArrowSchema, release: ?*const fn (*ArrowSchema) callconv(.c) void, private_data: ?*anyopaque };
const ArrowArray = extern struct { length: i64, null_count: i64, offset: i64, n_buffers: i64, n_children: i64, buffers: [*]?*const anyopaque, children: ?*?*ArrowArray, dictionary: ?*ArrowArray, release: ?*const fn (*ArrowArray) callconv(.c) void, private_data: ?*anyopaque };
const SeriesExport = extern struct { field: *ArrowSchema, arrays: [*]*ArrowArray, len: usize, release: ?*const fn (*SeriesExport) callconv(.c) void, private_data: ?*anyopaque };

export fn _polars_plugin_get_version() u32 {
    return 1;
}
export fn _polars_plugin_get_last_error_message() [*:0]const u8 {
    return &message;
}
export fn assay_kernel_abi() u32 {
    return 2;
}
export fn assay_kernel_stopped() u32 {
    return @intFromBool(stopped.load(.acquire));
}
export fn assay_kernel_restart() void { // for tests
    stopped.store(false, .release);
}

fn releaseSchema(schema: *ArrowSchema) callconv(.c) void {
    if (schema.name) |name| gpa.free(std.mem.span(name));
    schema.release = null;
}
fn schemaOfWords(name: ?[*:0]const u8) ArrowSchema {
    const given = if (name) |written| std.mem.span(written) else "";
    const copy: ?[:0]u8 = gpa.allocSentinel(u8, given.len, 0) catch null;
    if (copy) |c| @memcpy(c, given);
    // Polars takes a schema without private data for none
    return .{ .format = "L", .name = if (copy) |c| c.ptr else null, .metadata = null, .flags = 2, .n_children = 0, .children = null, .dictionary = null, .release = releaseSchema, .private_data = &message };
}
export fn _polars_plugin_field_facts(fields: [*]ArrowSchema, n: usize, out: *ArrowSchema, _: ?[*]const u8, _: usize) void {
    out.* = schemaOfWords(fields[0].name);
    for (fields[0..n]) |*field| if (field.release) |release| release(field);
}

// The words have two owners, as Polars takes the array out of the series and may release either first.
const Cells = struct { buffers: [2]?*const anyopaque, words: []u64 };
fn releaseCells(array: *ArrowArray) callconv(.c) void {
    const cells: *Cells = @ptrCast(@alignCast(array.private_data orelse return));
    array.private_data = null;
    array.release = null;
    gpa.free(cells.words);
    gpa.destroy(cells);
}
const Exported = struct { schema: ArrowSchema, array: ArrowArray, pointer: *ArrowArray };
fn releaseSeries(series: *SeriesExport) callconv(.c) void {
    const exported: *Exported = @ptrCast(@alignCast(series.private_data orelse return));
    series.private_data = null;
    series.release = null;
    if (exported.schema.release) |release| release(&exported.schema);
    gpa.destroy(exported);
}

const Work = struct { given: []const u8, series: *SeriesExport, words: []u64 };
fn run(anything: *anyopaque) callconv(.c) void {
    const work: *Work = @ptrCast(@alignCast(anything));
    if (!std.mem.eql(u8, std.mem.span(work.series.field.format), "vu")) @panic("not a column of text");
    const p = programIn(work.given) orelse return @memset(work.words, ASK);
    defer letGo(p);
    var from: usize = 0;
    for (work.series.arrays[0..work.series.len]) |array| {
        const n: usize = @intCast(array.length);
        scan(p, array, work.words[from..][0..n]);
        from += n;
    }
}

export fn _polars_plugin_facts(in: [*]SeriesExport, n: usize, given: [*]const u8, size: usize, out: *SeriesExport, _: ?*anyopaque) void {
    const series = &in[0];
    var rows: usize = 0;
    for (series.arrays[0..series.len]) |array| rows +|= if (array.length > 0) @as(usize, @intCast(array.length)) else 0;
    defer for (in[0..n]) |*each| {
        for (each.arrays[0..each.len]) |array| if (array.release) |release| release(array);
        if (each.release) |release| release(each);
    };
    const words = gpa.alloc(u64, rows) catch return tell("out of memory");
    const cells = gpa.create(Cells) catch return tell("out of memory");
    const exported = gpa.create(Exported) catch return tell("out of memory");
    cells.* = .{ .buffers = .{ null, words.ptr }, .words = words };
    var work = Work{ .given = given[0..size], .series = series, .words = words };
    if (stopped.load(.acquire) or assay_guarded(run, &work) == 0) @memset(words, ASK);
    exported.schema = schemaOfWords(series.field.name);
    exported.array = .{ .length = @bitCast(@as(u64, rows)), .null_count = 0, .offset = 0, .n_buffers = 2, .n_children = 0, .buffers = &cells.buffers, .children = null, .dictionary = null, .release = releaseCells, .private_data = cells };
    exported.pointer = &exported.array;
    out.* = .{ .field = &exported.schema, .arrays = @ptrCast(&exported.pointer), .len = 1, .release = releaseSeries, .private_data = exported };
}
