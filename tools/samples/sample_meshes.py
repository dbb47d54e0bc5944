#!/usr/bin/env python3
"""Generates meshes to train on: tables, chairs, stairs, lamps, cups and others, all different, each with
a caption file. The same arguments give the same files.

usage: tools/samples/sample_meshes.py FOLDER [--count 120] [--seed 1] [--max-faces 400] [--kinds chair cup]
"""
import argparse
import math
import pathlib
import random


class Mesh:
    def __init__(self):
        self.vertices, self.faces = [], []

    def add(self, vertices, faces):
        start = len(self.vertices)
        self.vertices += vertices
        self.faces += [tuple(start + corner for corner in face) for face in faces]

    def box(self, x, y, z, width, height, depth):
        """A box; (x, y, z) is the centre of its lower side."""
        w, d = width / 2, depth / 2
        self.prism([(x - w, z - d), (x + w, z - d), (x + w, z + d), (x - w, z + d)], y, y + height)

    def prism(self, outline, low, high, top=1.0, shift=(0, 0)):
        """Extrudes a convex outline in (x, z) upwards; `top` scales its upper end, 0 makes a point."""
        n = len(outline)
        cx, cz = sum(p[0] for p in outline) / n, sum(p[1] for p in outline) / n
        upper = [(cx + shift[0] + (x - cx) * top, cz + shift[1] + (z - cz) * top) for x, z in outline]
        ring = range(n)
        faces = [(0, i, i + 1) for i in range(1, n - 1)]
        if top == 0:
            vertices = [(x, low, z) for x, z in outline] + [(cx + shift[0], high, cz + shift[1])]
            self.add(vertices, faces + [(i, n, (i + 1) % n) for i in ring])
            return
        vertices = [(x, low, z) for x, z in outline] + [(x, high, z) for x, z in upper]
        faces += [(n, n + i + 1, n + i) for i in range(1, n - 1)]
        for i in ring:
            j = (i + 1) % n
            faces += [(i, n + i, n + j), (i, n + j, j)]
        self.add(vertices, faces)

    def round(self, x, y, z, radius, height, sides, top=1.0):
        self.prism(circle(x, z, radius, sides), y, y + height, top)

    def lathe(self, profile, sides, closed=False):
        """A surface of revolution: a profile of (radius, height) points, turned about the vertical axis."""
        n = len(profile)
        vertices = [(x, y, z) for radius, y in profile for x, z in circle(0, 0, radius, sides)]
        faces = []
        for row in range(n if closed else n - 1):
            for i in range(sides):
                a, b = row * sides + i, row * sides + (i + 1) % sides
                c, d = ((row + 1) % n) * sides + i, ((row + 1) % n) * sides + (i + 1) % sides
                if profile[row][0] > 0:
                    faces.append((a, d, b))
                if profile[(row + 1) % n][0] > 0:
                    faces.append((a, c, d))
        self.add(vertices, faces)

    def ring(self, outer, inner, low, high):
        """A wall between two outlines with the same number of corners."""
        n = len(outer)
        self.add([(x, y, z) for y in (low, high) for o in (outer, inner) for x, z in o],
                 [face for i in range(n) for j in [(i + 1) % n] for face in (
                     (i, 2 * n + i, 2 * n + j), (i, 2 * n + j, j),  # outside
                     (n + i, 3 * n + j, 3 * n + i), (n + i, n + j, 3 * n + j),  # inside
                     (2 * n + i, 3 * n + i, 3 * n + j), (2 * n + i, 3 * n + j, 2 * n + j),  # top
                     (i, n + j, n + i), (i, j, n + j))])  # bottom


def circle(x, z, radius, sides):
    return [(x + radius * math.cos(2 * math.pi * i / sides), z + radius * math.sin(2 * math.pi * i / sides))
            for i in range(sides)]


def legs(mesh, r, width, depth, height, thick):
    for sx in (-1, 1):
        for sz in (-1, 1):
            mesh.box(sx * (width - thick) / 2, 0, sz * (depth - thick) / 2, thick, height, thick)


def box(r, m):
    shape = r.choice(["cube", "flat box", "tall box"])
    w, d = r.uniform(0.8, 1.2), r.uniform(0.8, 1.2)
    h = {"cube": (w + d) / 2, "flat box": 0.35, "tall box": 1.9}[shape]
    m.box(0, 0, 0, w, h, d)
    return f"a {shape}"


def table(r, m):
    height, round_top = r.uniform(0.5, 1.0), r.random() < 0.4
    w, d, thick = r.uniform(1.0, 2.0), r.uniform(0.8, 1.2), r.uniform(0.06, 0.14)
    if round_top:
        m.round(0, height, 0, 0.8, thick, r.choice([8, 12, 16]))
        m.box(0, 0, 0, 0.15, height, 0.15)
        m.box(0, 0, 0, 0.7, 0.08, 0.7)
        return "a round table with one leg"
    legs(m, r, w, d, height, r.uniform(0.08, 0.16))
    m.box(0, height, 0, w, thick, d)
    return "a long table with four legs" if w > 1.5 else "a table with four legs"


def chair(r, m):
    seat, w, thick = r.uniform(0.45, 0.65), r.uniform(0.55, 0.75), r.uniform(0.06, 0.1)
    legs(m, r, w, w, seat, thick)
    m.box(0, seat, 0, w, thick, w)
    back = r.uniform(0.5, 0.9)
    m.box(0, seat + thick, -(w - thick) / 2, w, back, thick)
    if r.random() < 0.4:
        for side in (-1, 1):
            m.box(side * (w - thick) / 2, seat + thick + 0.22, thick / 2, thick, thick, w - thick)
            m.box(side * (w - thick) / 2, seat + thick, (w - thick) / 2, thick, 0.22, thick)
        return "a chair with arms"
    return "a chair with a high back" if back > 0.7 else "a chair"


def stool(r, m):
    height, sides = r.uniform(0.5, 1.0), r.choice([6, 8, 12])
    m.round(0, height, 0, 0.4, 0.1, sides)
    for i in range(3):
        x, z = circle(0, 0, 0.28, 3)[i]
        m.box(x, 0, z, 0.09, height, 0.09)
    return "a high stool with three legs" if height > 0.75 else "a stool with three legs"


def bench(r, m):
    w, h, d = r.uniform(1.4, 2.0), r.uniform(0.4, 0.55), r.uniform(0.4, 0.55)
    for side in (-1, 1):
        m.box(side * (w / 2 - 0.2), 0, 0, 0.12, h, d)
    m.box(0, h, 0, w, 0.1, d)
    if r.random() < 0.5:
        m.box(0, h + 0.1, -d / 2 + 0.05, w, 0.5, 0.1)
        return "a bench with a back"
    return "a bench"


def stairs(r, m):
    n, w = r.randint(3, 9), r.uniform(0.6, 1.2)
    for i in range(n):
        m.box(0, 0, -i * 0.25, w, (i + 1) * 0.2, 0.25)
    return f"stairs with {n} steps"


def lamp(r, m):
    sides, height = r.choice([8, 10, 12]), r.uniform(1.0, 1.8)
    m.round(0, 0, 0, 0.35, 0.08, sides)
    m.round(0, 0.08, 0, 0.05, height, 6)
    m.round(0, height, 0, 0.45, 0.45, sides, top=r.uniform(0.3, 0.6))
    return "a tall lamp" if height > 1.4 else "a lamp"


def house(r, m):
    w, d, h, roof = r.uniform(0.9, 1.3), r.uniform(0.9, 1.6), r.uniform(0.6, 1.0), r.uniform(0.4, 0.8)
    m.box(0, 0, 0, w, h, d)
    a, b = w / 2 + 0.1, d / 2 + 0.1
    m.add([(-a, h, -b), (a, h, -b), (0, h + roof, -b), (-a, h, b), (a, h, b), (0, h + roof, b)],
          [(0, 2, 1), (3, 4, 5), (0, 3, 5), (0, 5, 2), (1, 2, 5), (1, 5, 4), (0, 1, 4), (0, 4, 3)])
    if r.random() < 0.6:
        m.box(w / 4, h, -d / 4, 0.18, roof + 0.1, 0.18)
        return "a house with a chimney"
    return "a house"


def star(r, m):
    points, inner, thick = r.randint(4, 9), r.uniform(0.35, 0.55), r.uniform(0.1, 0.2)
    n = 2 * points
    outline = []
    for i in range(n):
        radius, angle = (1 if i % 2 == 0 else inner), math.pi / 2 + 2 * math.pi * i / n
        outline.append((radius * math.cos(angle), radius * math.sin(angle)))
    m.add([(x, y, 0) for x, y in outline] + [(0, 0, thick), (0, 0, -thick)],
          [face for i in range(n) for face in ((i, (i + 1) % n, n), ((i + 1) % n, i, n + 1))])
    return f"a star with {points} points"


def cup(r, m):
    sides, radius, height = r.choice([8, 10, 12]), r.uniform(0.4, 0.55), r.uniform(0.8, 1.2)
    m.round(0, 0, 0, radius, 0.08, sides)
    m.ring(circle(0, 0, radius, sides), circle(0, 0, radius * 0.85, sides), 0.08, height)
    if r.random() < 0.7:
        x = radius + 0.17
        m.box(radius + 0.1, height * 0.25, 0, 0.25, 0.1, 0.12)
        m.box(radius + 0.1, height * 0.7, 0, 0.25, 0.1, 0.12)
        m.box(x, height * 0.25 + 0.1, 0, 0.11, height * 0.45 - 0.1, 0.12)
        return "a cup with a handle"
    return "a cup"


def tower(r, m):
    n = r.randint(2, 5)
    y, w = 0, 1.0
    for _ in range(n):
        h = r.uniform(0.35, 0.6)
        m.box(0, y, 0, w, h, w)
        y, w = y + h, w * 0.75
    m.prism(circle(0, 0, w * 0.6, 4), y, y + 0.4, top=0)
    return f"a tower with {n} floors"


def pyramid(r, m):
    sides = r.choice([3, 4, 5, 6])
    m.prism(circle(0, 0, 1, sides), 0, r.uniform(0.9, 1.7), top=0)
    return f"a pyramid with {sides} sides"


def tree(r, m):
    n, sides = r.randint(1, 4), r.choice([6, 8, 10])
    m.round(0, 0, 0, 0.12, 0.4, 6)
    for i in range(n):
        m.prism(circle(0, 0, 0.7 - 0.13 * i, sides), 0.4 + 0.35 * i, 1.0 + 0.35 * i, top=0)
    return f"a fir tree with {n} layers" if n > 1 else "a small fir tree"


def shelf(r, m):
    n, w, h, d = r.randint(2, 6), r.uniform(0.8, 1.3), r.uniform(1.2, 1.8), 0.35
    for side in (-1, 1):
        m.box(side * w / 2, 0, 0, 0.08, h, d)
    for i in range(n):
        m.box(0, i * (h - 0.08) / (n - 1), 0, w - 0.08, 0.08, d)
    return f"a shelf with {n} boards"


def bed(r, m):
    w, length = r.uniform(0.9, 1.5), 2.0
    legs(m, r, w, length, 0.2, 0.1)
    m.box(0, 0.2, 0, w, 0.25, length)
    m.box(0, 0.2, -length / 2 - 0.04, w, r.uniform(0.6, 0.9), 0.08)
    for side in ((-1, 1) if w > 1.2 else (0,)):
        m.box(side * w / 4, 0.45, -length / 2 + 0.25, min(w * 0.4, 0.5), 0.12, 0.35)
    return "a wide bed with two pillows" if w > 1.2 else "a bed with a pillow"


def wheel(r, m):
    sides, spokes = r.choice([10, 12, 16]), r.choice([2, 3, 4])
    outer, inner = circle(0, 0, 1, sides), circle(0, 0, 0.82, sides)
    m.ring(outer, inner, -0.12, 0.12)
    for i in range(spokes):
        a = math.pi * i / spokes
        c, s = math.cos(a), math.sin(a)
        m.prism([(0.85 * c - 0.05 * s, 0.85 * s + 0.05 * c), (-0.85 * c - 0.05 * s, -0.85 * s + 0.05 * c),
                 (-0.85 * c + 0.05 * s, -0.85 * s - 0.05 * c), (0.85 * c + 0.05 * s, 0.85 * s - 0.05 * c)],
                -0.05, 0.05)
    m.vertices = [(x, z, y) for x, y, z in m.vertices]  # upright
    return f"a wheel with {2 * spokes} spokes"


def arch(r, m):
    n, height = r.choice([6, 8, 10]), r.uniform(0.5, 1.0)
    for side in (-1, 1):
        m.box(side * 0.7, 0, 0, 0.3, height, 0.4)
    outer = [(0.85 * math.cos(math.pi * i / n), height + 0.85 * math.sin(math.pi * i / n)) for i in range(n + 1)]
    inner = [(0.55 * math.cos(math.pi * i / n), height + 0.55 * math.sin(math.pi * i / n)) for i in range(n + 1)]
    k = n + 1
    m.add([(x, y, z) for z in (0.2, -0.2) for line in (outer, inner) for x, y in line],
          [face for i in range(n) for face in (
              (i, i + 1, k + i + 1), (i, k + i + 1, k + i),
              (2 * k + i, 3 * k + i + 1, 2 * k + i + 1), (2 * k + i, 3 * k + i, 3 * k + i + 1),
              (i, 2 * k + i + 1, i + 1), (i, 2 * k + i, 2 * k + i + 1),
              (k + i, k + i + 1, 3 * k + i + 1), (k + i, 3 * k + i + 1, 3 * k + i))])
    return "a high arch" if height > 0.75 else "an arch"


def rocket(r, m):
    sides, length, fins = r.choice([8, 10, 12]), r.uniform(1.0, 1.6), r.choice([3, 4])
    m.round(0, 0.2, 0, 0.3, length, sides)
    m.prism(circle(0, 0, 0.3, sides), 0.2 + length, 0.8 + length, top=0)
    for x, z in circle(0, 0, 0.45, fins):
        a = math.atan2(z, x)
        c, s = math.cos(a), math.sin(a)
        m.add([(0.28 * c, 0.8, 0.28 * s), (0.28 * c, 0.2, 0.28 * s), (0.7 * c, 0, 0.7 * s)]
              + [(0.28 * c - 0.05 * s, 0.3, 0.28 * s + 0.05 * c)],
              [(0, 1, 2), (0, 2, 3), (1, 3, 2), (0, 3, 1)])
    return f"a rocket with {fins} fins"


def cross(r, m):
    t, h = r.uniform(0.2, 0.4), r.uniform(1.4, 2.0)
    m.box(0, 0, 0, t, h, t)
    for side in (-1, 1):
        m.box(side * (t / 2 + 0.3), h * 0.6, 0, 0.6, t, t)
    return "a thick cross" if t > 0.3 else "a cross"


def bottle(r, m):
    sides, body = r.choice([8, 10, 12]), r.uniform(0.8, 1.3)
    m.round(0, 0, 0, 0.4, body, sides)
    m.round(0, body, 0, 0.4, 0.3, sides, top=0.35)
    m.round(0, body + 0.3, 0, 0.14, 0.4, sides)
    return "a tall bottle" if body > 1.05 else "a bottle"


def ball(r, m):
    sides, rings, squash = r.choice([8, 10, 12, 14]), r.choice([5, 6, 8, 10]), r.choice([1, 1, 0.6, 1.5])
    m.lathe([(math.sin(math.pi * i / rings) if 0 < i < rings else 0, -squash * math.cos(math.pi * i / rings))
             for i in range(rings + 1)], sides)
    return {1: "a ball", 0.6: "a flat ball", 1.5: "an egg"}[squash]


def ring(r, m):
    sides, around, thick = r.choice([10, 12, 16]), r.choice([6, 8, 10]), r.uniform(0.15, 0.4)
    m.lathe([(1 + thick * math.cos(2 * math.pi * i / around), thick * math.sin(2 * math.pi * i / around))
             for i in range(around)], sides, closed=True)
    return "a thick ring" if thick > 0.27 else "a thin ring"


def vase(r, m):
    sides, steps = r.choice([10, 12, 14]), r.choice([6, 8, 10, 12])
    base, belly, turns = r.uniform(0.25, 0.4), r.uniform(0.15, 0.3), r.uniform(2.5, 5)
    line = [(base + belly * math.sin(turns * i / steps), 1.6 * i / steps) for i in range(steps + 1)]
    m.lathe([(0, 0)] + [(max(radius, 0.08), y) for radius, y in line], sides)
    return "a vase"


KINDS = {maker.__name__: maker for maker in (
    box, table, chair, stairs, lamp, house, star, cup, stool, tower, tree, shelf, bench, pyramid,
    wheel, bed, rocket, arch, bottle, cross, ball, vase, ring)}


def write(path, mesh):
    lines = [f"v {x:.4f} {y:.4f} {z:.4f}" for x, y, z in mesh.vertices]
    lines += ["f " + " ".join(str(corner + 1) for corner in face) for face in mesh.faces]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("usage:")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-faces", type=int, default=400, help="largest number of faces per mesh; kinds that need more are left out")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND",
                        help=", ".join(KINDS))
    options = parser.parse_args()
    if options.max_faces < 60:
        parser.error("--max-faces must be at least 60")
    options.folder.mkdir(parents=True, exist_ok=True)
    fewest, most, made = 10**9, 0, 0
    for i in range(options.count):
        kind = options.kinds[i % len(options.kinds)]
        for attempt in range(1000):
            mesh = Mesh()
            caption = KINDS[kind](random.Random(f"{options.seed}/{kind}/{i}/{attempt}"), mesh)
            if len(mesh.faces) <= options.max_faces:
                break
        else:
            continue  # no attempt had few enough faces: one mesh less
        made += 1
        write(options.folder / f"{kind}_{i:03}.obj", mesh)
        (options.folder / f"{kind}_{i:03}.txt").write_text(caption + "\n")
        fewest, most = min(fewest, len(mesh.faces)), max(most, len(mesh.faces))
    print(f"{options.folder}: {made} meshes of {fewest} to {most} faces, with captions")


if __name__ == "__main__":
    main()
