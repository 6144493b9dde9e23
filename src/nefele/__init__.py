from nefele.data import LocalData
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.result import *
from nefele.solvers import solve
