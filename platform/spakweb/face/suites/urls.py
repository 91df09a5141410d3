"""Addresses of suites and experiments, below /t/<team>/, and of keeping a run as a case."""

from __future__ import annotations

from django.urls import path

from spakweb.face.suites import views

urlpatterns = [
    path("suites/", views.suite_list, name="spak-suite-list"),
    path("suites/new/", views.new, name="spak-suite-new"),
    path("suites/bring/", views.bring, name="spak-suite-bring"),
    path("suites/<slug:suite>/", views.suite_page, name="spak-suite"),
    path("suites/<slug:suite>/change/", views.change, name="spak-suite-change"),
    path("suites/<slug:suite>/seal/", views.seal, name="spak-case-seal"),
    path("suites/<slug:suite>/golden/", views.golden, name="spak-case-golden"),
    path("suites/<slug:suite>/begin/", views.begin, name="spak-experiment-begin"),
    path("suites/<slug:suite>/<int:number>/", views.experiment_page, name="spak-experiment"),
    path("suites/<slug:suite>/<int:number>/stop/", views.stop, name="spak-experiment-stop"),
    path("suites/<slug:suite>/<int:number>/resume/", views.resume, name="spak-experiment-resume"),
    path("runs/<str:run>/case/", views.keep, name="spak-run-keep"),
]
